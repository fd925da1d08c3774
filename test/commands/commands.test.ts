import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { builtinCommands } from "../../src/commands/list.ts";
import { stage, typed } from "./stage.ts";

async function text(input: string, at = stage()): Promise<string> {
  const result = await typed(input, at);
  return result?.kind === "completed" ? result.text : JSON.stringify(result);
}

const promptOf = async (input: string): Promise<string> => {
  const result = await typed(input);
  return result?.kind === "prompt" ? result.prompt : "";
};

describe("the list", () => {
  it("the list of slash commands names every file that defines a command", () => {
    const list = readFileSync("src/commands/list.ts", "utf8");
    const files = readdirSync("src/commands", { recursive: true, encoding: "utf8" });
    const defining = files.filter(
      (name) =>
        name.endsWith(".ts") &&
        name !== "command.ts" &&
        /\bdefineCommand\(/.test(readFileSync(`src/commands/${name}`, "utf8")),
    );
    expect(defining.length).toBeGreaterThan(15);
    expect(defining.filter((name) => !list.includes(`"./${name}"`))).toEqual([]);
  });

  it("the list of slash commands has no name twice, and a summary for each", () => {
    const names = builtinCommands.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(new Set(names).size).toBe(names.length);
    expect(builtinCommands.filter(({ summary }) => summary.length < 20 || summary.length > 110)).toEqual([]);
  });
});

describe("prompts of commands", () => {
  it("ORC-61 /review leads to one task call for code-review", async () => {
    const prompt = await promptOf("/review the last two commits");
    expect(prompt).toContain('`agent_type: "code-review"`');
    expect(prompt).toMatch(/To be reviewed: the last two commits$/);
    expect(await promptOf("/review")).toMatch(/To be reviewed: the changes that are not committed yet/);
  });

  it("ORC-62 ORC-66 /research gives a report path in the session's files and names the tools to call", async () => {
    const result = await typed("/research How do leases expire? (ünïcode & all)");
    const reportPath = "/state/files/research-how-do-leases-expire-u-ni-code-all-20260102T030405.md";
    expect(result).toEqual({
      kind: "prompt",
      prompt: expect.stringContaining(reportPath),
      displayPrompt: "Research: How do leases expire? (ünïcode & all)",
      toolLimits: { available: ["task", "create", "view"], reasonToRefuse: expect.any(Function) },
      gate: { kind: "research", reportPath },
    });
    const prompt = await promptOf("/research x");
    for (const forbidden of ["grep", "glob", "bash", "read_agent", "ask_user"]) {
      expect(prompt).toContain(`\`${forbidden}\``);
    }
    expect(prompt).toContain("the search and fetch tools");
    expect(prompt).not.toContain("web_search");
    await expect(typed("/research")).rejects.toThrow("The topic is missing.");
  });

  it("ORC-67 /research asks for research agents, 3 to 5 at once, 6 to 10 in all", async () => {
    const prompt = await promptOf("/research x");
    for (const fact of [
      '`agent_type: "research"`',
      '`mode: "sync"`',
      "3 to 5",
      "6 to 10",
      "Nobody answers questions",
    ]) {
      expect(prompt).toContain(fact);
    }
  });

  it("the name of a /research report is short and inside the folder, whatever the topic", async () => {
    for (const topic of ["../../etc/passwd", "日本語", "x".repeat(5000), "a\n/b"]) {
      const result = await typed(`/research ${topic}`);
      const path = result?.kind === "prompt" && result.gate?.kind === "research" ? result.gate.reportPath : "";
      expect(path).toMatch(/^\/state\/files\/research-(?:[a-z0-9-]{1,48}-)?20260102T030405\.md$/);
    }
  });

  it("ORC-63 /subconscious run asks for exactly one call with fixed values", async () => {
    const prompt = await promptOf("/subconscious run");
    for (const fact of [
      "exactly once",
      "rem-agent",
      "background",
      "rem-consolidate",
      "Consolidate session learnings",
    ]) {
      expect(prompt).toContain(fact);
    }
    await expect(typed("/subconscious")).rejects.toThrow("one action");
    const without = stage({ agents: { list: () => [], selected: () => undefined, select: async () => undefined } });
    await expect(typed("/subconscious run", without)).rejects.toThrow("not available");
  });

  it("ORC-64 /fleet sends one message and shows that it is deployed", async () => {
    expect(await typed("/fleet port the parser")).toEqual({
      kind: "prompt",
      prompt: expect.stringMatching(/User request: port the parser$/),
      displayPrompt: "Fleet deployed: port the parser",
      gate: { kind: "fleet" },
    });
    expect(await typed("/fleet")).toMatchObject({ displayPrompt: "Fleet deployed" });
  });

  it("prompts of commands keep placeholders that the user typed", async () => {
    expect(await promptOf("/research {{report}} {{topic}}")).toMatch(/Topic: \{\{report\}\} \{\{topic\}\}$/);
  });

  it.each(readdirSync("src/commands").filter((name) => name.endsWith(".md")))(
    "prompts of commands have at most 2.5 kB: %s",
    (name) => {
      const content = readFileSync(`src/commands/${name}`, "utf8");
      expect(Buffer.byteLength(content)).toBeLessThanOrEqual(name === "fleet.md" ? 2048 : 2560);
      expect(content.length).toBeGreaterThan(200);
    },
  );
});

describe("commands that change the mode", () => {
  const inMode = (mode: "interactive" | "plan" | "autopilot") => stage({ mode });

  it.each([
    ["/autopilot", "interactive", "autopilot"],
    ["/autopilot", "plan", "autopilot"],
    ["/autopilot", "autopilot", "interactive"],
    ["/autopilot on", "autopilot", "autopilot"],
    ["/autopilot OFF", "autopilot", "interactive"],
    ["/plan", "interactive", "plan"],
    ["/plan", "plan", "interactive"],
  ] as const)("ORC-65 the command %s while %s switches to %s", async (input, before, after) => {
    expect(await typed(input, inMode(before))).toMatchObject({ kind: "mode", mode: after });
  });

  it("/autopilot off does not end plan mode", async () => {
    expect(await typed("/autopilot off", inMode("plan"))).toEqual({ kind: "completed", text: "Autopilot is off." });
  });

  it("/autopilot with a task switches and sends it", async () => {
    expect(await typed("/autopilot on the parser, add tests")).toEqual({
      kind: "prompt",
      prompt: "on the parser, add tests",
      displayPrompt: "on the parser, add tests",
      mode: "autopilot",
      requiredTool: "task_complete",
    });
  });

  it("/plan with a task marks the prompt and switches", async () => {
    expect(await typed("/plan a cache")).toEqual({
      kind: "prompt",
      prompt: "[[PLAN]] a cache",
      displayPrompt: "a cache",
      mode: "plan",
    });
  });
});

describe("commands that answer with a text", () => {
  it("/agent lists the agents that the user may choose, without control characters", async () => {
    expect(await text("/agent")).toBe(
      "* explore: Looks around\n  Doc Writer: Writes documents\n  rem-agent: Tidies memory\n* is the main agent.",
    );
  });

  it("/agent accepts a name in any spelling, or none", async () => {
    const at = stage();
    expect(await text("/agent doc_writer", at)).toContain("Doc Writer is the main agent");
    await text("/agent none", at);
    expect(at.asked).toEqual(["agents.select Doc Writer", "agents.select undefined"]);
    await expect(typed("/agent exlpore")).rejects.toThrow(expect.objectContaining({ hint: "Did you mean explore?" }));
    await expect(typed("/agent hidden")).rejects.toThrow('There is no agent "hidden".');
  });

  it("/tasks shows a tree and acts on one", async () => {
    const at = stage();
    expect(await text("/tasks", at)).toBe(
      "scan  explore, sync · running · 1 min 1 s · 4 calls, 900 tokens  Read all\n" +
        "  scan-part  explore, sync · running · 1 min 1 s · 4 calls, 900 tokens · grep  Read all",
    );
    expect(await text("/tasks show scan", at)).toBe("report of scan");
    expect(await text("/tasks stop scan", at)).toBe("scan is stopped.");
    expect(await text("/tasks promote scan-part", at)).toBe("scan-part continues in the background.");
    expect(at.asked).toEqual(["tasks.stop scan", "tasks.promote scan-part"]);
    await expect(typed("/tasks stop scna")).rejects.toThrow(expect.objectContaining({ hint: "Did you mean scan?" }));
    for (const wrong of ["/tasks stop", "/tasks kill scan", "/tasks stop scan now"]) {
      await expect(typed(wrong)).rejects.toThrow("/tasks does not understand this.");
    }
  });

  it("/every, /after and /schedules manage a list", async () => {
    const at = stage();
    expect(await text("/every 5m look at the build", at)).toBe("Schedule 1: every 5 min. /schedules stop 1 ends it.");
    expect(await text("/after 90s say hello\nand more", at)).toContain("Schedule 2: once, in 1 min 30 s.");
    expect(await text("/schedules", at)).toBe(
      "1  every 5 min, next in 5 min: look at the build\n2  once, in 1 min 30 s: say hello and more",
    );
    expect(await text("/schedules stop 2", at)).toBe("Schedule 2 is stopped.");
    await expect(typed("/schedules stop 9", at)).rejects.toThrow("There is no schedule 9.");
    await expect(typed("/schedules clear", at)).rejects.toThrow("does not understand");
  });

  it("/model lists models, chooses one, and rejects a misspelt name", async () => {
    const at = stage();
    expect(await text("/model", at)).toBe("* local/small\n  local/large");
    expect(await text("/model local/large", at)).toBe("The next message will be answered by local/large.");
    expect(await text("/model elsewhere/other-model-family", at)).toContain("elsewhere/other-model-family");
    await expect(typed("/model local/lagre")).rejects.toThrow(
      expect.objectContaining({ hint: "Did you mean local/large?" }),
    );
  });

  it.each([
    ["/usage", "3 turns, 12,000 tokens in, 345 out, price unknown, 1 min 5 s of model time"],
    ["/skills", "/release-notes: Writes notes"],
    ["/mcp", "github  failed, 0 tools: no token"],
    ["/permissions", "allow shell(git log:*)"],
    ["/permissions reset", "Removed 2 approvals of this session."],
    ["/add-dir other", "Agents can now use /real/other."],
    ["/undo", "1 file is as it was."],
    ["/rewind", "1  first"],
    ["/rewind 2", "rewound to 2"],
    ["/rewind 2 files", "rewound to 2 with files"],
    ["/rewind restore", "restored"],
    ["/rewind restore files", "restored with files"],
    ["/fork", "forked at the end"],
    ["/fork 3", "forked at 3"],
    ["/rename  the   parser ", "This session is now called the parser."],
    ["/help fleet", "/fleet [task]: Divide the work into todos and run several agents in parallel"],
  ])("a command answers with the expected text: %s", async (input, expected) => {
    expect(await text(input)).toBe(expected);
  });

  it.each([
    "/add-dir",
    "/rename",
    `/rename ${"x".repeat(101)}`,
    "/undo 3",
    "/rewind x",
    "/rewind 1 all",
    "/fork x",
    "/permissions all",
    "/help fleeet",
  ])("the command %s is refused with an error that says what to do", async (input) => {
    await expect(typed(input)).rejects.toThrow(
      expect.objectContaining({ kind: "usage", hint: expect.stringMatching(/.{10}/) }),
    );
  });
});
