import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { storyByAgent } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, resultsOf, type StageOptions, starts, texts, toolNames } from "./stage.ts";

const started = (type: string, ...steps: Parameters<typeof of>[1][]) => [
  starts("a", type),
  says("ok"),
  of("a", ...(steps.length > 0 ? steps : [says("done")])),
];

const markdown = (name: string, fields = "", body = `You are ${name}.`): string =>
  `---\nname: ${name}\ndescription: does ${name}\n${fields}---\n${body}\n`;

const writers = ["create", "edit", "apply_patch"];
const server = fileURLToPath(new URL("../mcp/servers/scripted.mjs", import.meta.url));

describe("built-in agents", () => {
  it.each([
    ["explore reads and searches only", "explore", ["view", "glob", "grep"], [...writers, "bash", "task"]],
    ["general-purpose has what the main agent has", "general-purpose", [...writers, "bash", "task", "sql"], []],
    ["rubber-duck criticises and changes nothing", "rubber-duck", ["view", "grep"], writers],
    ["code-review has nothing that writes files", "code-review", ["view", "grep", "bash"], writers],
    ["research searches and fetches", "research", ["view", "grep", "glob", "web_fetch"], [...writers, "bash"]],
  ])("ORC-13 ORC-15 ORC-16 ORC-17 ORC-18 the built-in agent %s", async (_title, type, has, hasNot) => {
    await onStage(started(type), {}, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("a"))).toEqual(expect.arrayContaining([...has]));
      expect(toolNames(first("a")).filter((name) => (hasNot as string[]).includes(name))).toEqual([]);
      expect(session.agents.tasks?.view("a")).toMatchObject({ agentType: type, status: "completed" });
    });
  });

  it.each([
    ["fetches and searches where a search service is configured", { BRAVE_API_KEY: "brave-key-of-the-test" }, true],
    ["only fetches where nothing can search, and no prompt names the search tool", {}, false],
  ])("ORC-18 the research agent is dispatched and %s", async (_title, environment, searches) => {
    await onStage(started("research"), { environment }, async ({ session, first, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ agentType: "research", status: "completed" });
      const web = toolNames(first("a")).filter((name) => name.startsWith("web_"));
      expect(web).toEqual(searches ? ["web_fetch", "web_search"] : ["web_fetch"]);
      expect(JSON.stringify(requests()).includes("web_search")).toBe(searches);
      expect(dataOf(session.events, "session.warning")).toEqual([]);
    });
  });

  it("ORC-16 rubber-duck is neither offered nor started while its flag is off", async () => {
    const steps = [starts("a", "rubber-duck"), says("ok")];
    await onStage(steps, { environment: { RUBBER_DUCK_AGENT: "off" } }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(JSON.stringify(first("main").tools)).not.toContain("rubber-duck");
      expect(resultsOf(session.events, "task")).toEqual([
        expect.stringMatching(/^There is no agent "rubber-duck"\. Valid values/),
      ]);
      expect(session.agents.tasks?.list()).toEqual([]);
    });
  });

  it("ORC-14 task runs a command and returns a short text on success and the whole output on failure, however long it is", async () => {
    const run = (command: string) => calls(["bash", { command, description: "run it" }]);
    /** Does what the agent's prompt asks for, from what the command really did. */
    const report = ({ system, messages }: ModelRequest) => {
      const output = messages.at(-1)?.content ?? "";
      const [, code] = /exit code (\d+)/.exec(output) ?? [];
      const [short, whole] = [/When it went well, one line/, /When it failed:[\s\S]*The complete output/];
      if (!short.test(system) || !whole.test(system)) return says("I was not told what to report.");
      return says(code === "0" ? "All 3 checks passed." : `It failed:\n${output}`);
    };
    const steps = [
      starts("a", "task"),
      starts("b", "task"),
      says("ok"),
      of("a", run("for i in 1 2 3; do echo check $i of a long list; done"), report),
      of("b", run("for i in $(seq 400); do echo line $i; done; echo broken >&2; exit 3"), report),
    ];
    await onStage(steps, {}, async ({ session, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      const [first = "", second = ""] = resultsOf(session.events, "task");
      expect(first).toBe("All 3 checks passed.");
      for (const line of ["line 1\n", "line 200\n", "line 400\n", "broken", "exit code 3"])
        expect(second).toContain(line);
      expect(requests("main").at(-1)?.messages.at(-1)?.content).toContain("line 400\n");
    });
  });

  it("rubber-duck is not offered when settings switch it off", async () => {
    const files = { "home:settings.json": JSON.stringify({ subagents: { disabledSubagents: ["rubber-duck"] } }) };
    await onStage([starts("a", "rubber-duck"), says("ok")], { files }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(JSON.stringify(first("main").tools)).not.toContain("rubber-duck");
      expect(resultsOf(session.events, "task")[0]).toContain('There is no agent "rubber-duck"');
    });
  });
});

describe("agents of project, user, plugin and service", () => {
  it("ORC-20 ORC-24 SDK-17 SDK-18 agents of project and user are types like the built-in ones and run the same way", async () => {
    const hook = (point: string) => ({
      [point]: [{ type: "command", bash: `payload=$(cat); echo "$payload" >> ${point}` }],
    });
    const files = {
      ".troupe/agents/poet.md": markdown("poet"),
      "home:agents/painter.md": markdown("painter"),
      "home:hooks/hooks.json": JSON.stringify({
        version: 1,
        hooks: { ...hook("subagentStart"), ...hook("subagentStop") },
      }),
    };
    const names = ["poet", "painter", "explore"];
    const steps = [
      calls(
        ...names.map((name) => ["task", { description: "d", prompt: `@${name} go`, agent_type: name, name }] as const),
      ),
      says("ok"),
      ...names.map((name) => of(name, says(`words of ${name}`))),
    ];
    await onStage(steps, { files }, async ({ session, first, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      const { poet, painter, explore } = storyByAgent(session.events);
      expect([poet, painter]).toEqual([explore, explore]);
      const [record, ...others] = names.map((name) => Object.keys(session.agents.tasks?.snapshot(name) ?? {}));
      expect(record).toContain("latestResponse");
      expect(others).toEqual([record, record]);
      for (const point of ["subagentStart", "subagentStop"]) {
        const payloads = readFileSync(join(folder, point), "utf8").trim().split(/\n+/);
        expect(payloads.map((line) => JSON.parse(line).agentName).toSorted(), point).toEqual(names.toSorted());
      }
      expect(first("poet").system).toContain("You are poet.");
      expect(
        dataOf(session.events, "troupe.task_state")
          .map(({ to }) => to)
          .toSorted(),
      ).toEqual([...Array(3).fill("completed"), ...Array(3).fill("running")]);
      const described = dataOf(session.events, "subagent.started").find(({ agentName }) => agentName === "poet");
      expect(described).toMatchObject({
        toolCallId: expect.any(String),
        agentDisplayName: "poet",
        agentDescription: "does poet",
      });
    });
  });

  it("ORC-21 agents of a plugin are types like the built-in ones", async () => {
    const files = {
      "plugins/verse/plugin.json": JSON.stringify({ name: "verse", version: "1.0.0" }),
      "plugins/verse/agents/poet.md": markdown("poet"),
    };
    const options = { files, workspace: { pluginDirectories: ["plugins/verse"] } };
    await onStage(started("verse:poet"), options, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("a").system).toContain("You are poet.");
      const task = first("main").tools.find(({ name }) => name === "task");
      expect(task?.parameters).toHaveProperty("properties.agent_type.enum", expect.arrayContaining(["poet"]));
      expect(task?.description).toContain("- poet: does poet");
      expect(dataOf(session.events, "subagent.started")).toMatchObject([{ agentDescription: "does poet" }]);
    });
    await onStage(started("verse:poet").slice(0, 2), { files }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "task")[0]).toContain('There is no agent "verse:poet"');
    });
  });

  it.each([
    ["answers adds its agents as types", 200, "sesame", ["poet"]],
    ["fails leaves the others working", 500, "sesame", []],
    ["has no token leaves the others working", 200, "", []],
  ])(
    "ORC-22 agents of a remote API that is asked once are types too: one that %s",
    async (_what, status, token, names) => {
      const asked: string[] = [];
      const remote = createServer((request, response) => {
        asked.push(`${request.url} ${request.headers.authorization}`);
        response.writeHead(status).end(JSON.stringify({ agents: [{ name: "poet", prompt: "You are poet." }] }));
      });
      await new Promise<void>((resolve) => remote.listen(0, "127.0.0.1", resolve));
      const environment = {
        TROUPE_AGENTS_URL: `http://127.0.0.1:${(remote.address() as AddressInfo).port}`,
        TROUPE_AGENTS_TOKEN: token,
      };
      const requests = token === "" ? [] : ["/agents/swe/custom-agents/acme/shop Bearer sesame"];
      const files = {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/config": '[remote "origin"]\n\turl = https://example.test/acme/shop.git\n',
        "home:agents/painter.md": markdown("painter"),
      };
      try {
        const steps = [...names, "painter"].flatMap((name) => [starts(name, name), of(name, says("done"))]);
        await onStage([...steps, says("ok")], { files, environment }, async ({ session, first, home, heard }) => {
          await session.sendAndWait({ prompt: "go" });
          for (const name of [...names, "painter"]) expect(first(name).system).toContain(`You are ${name}.`);
          const description = first("main").tools.find(({ name }) => name === "task")?.description ?? "";
          expect(["poet"].filter((name) => description.includes(`- ${name}`))).toEqual(names);
          // The watch reads all agents again; it does not ask the server again.
          writeFileSync(join(home, "agents", "late.md"), markdown("late"));
          const updates = () => dataOf(heard, "session.custom_agents_updated").map(({ agents }) => agents);
          await expect.poll(() => JSON.stringify(updates())).toContain('"late"');
          expect(asked).toEqual(requests);
        });
      } finally {
        remote.close();
      }
    },
  );

  it("ORC-23 SDK-03 an agent has the tools, model, names and skills of its file, and an unknown field is reported", async () => {
    const fields =
      "displayName: The Poet\ntools: [view, grep, words-*]\nmodel: alpha/small\nskills: [verse]\nuser-invocable: false\n" +
      `github: { toolsets: [issues] }\nweather: fine\nmcp-servers: ${JSON.stringify({ words: { command: process.execPath, args: [server, "plain"] } })}\n`;
    const files = {
      "home:agents/poet.md": markdown("poet", fields),
      ".github/skills/verse/SKILL.md": "---\nname: verse\ndescription: how to rhyme\n---\nRhyme in pairs.\n",
    };
    await onStage(started("poet"), { files }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("a").model).toBe("small");
      expect(toolNames(first("a"))).toEqual(["view", "grep", "words-echo"]);
      expect(texts(first("a"))[0]).toContain("Rhyme in pairs.");
      expect(dataOf(session.events, "subagent.started")).toMatchObject([
        { agentDisplayName: "The Poet", agentDescription: "does poet", model: expect.stringContaining("small") },
      ]);
      expect(dataOf(session.events, "session.warning").map(({ message }) => message)).toEqual([
        expect.stringContaining("weather"),
      ]);
    });
    await expect(onStage([], { files, agents: { main: "poet" } }, async () => undefined)).rejects.toThrow(
      "user-invocable: false",
    );
  });

  it("ORC-25 SDK-07 an agent can have MCP servers of its own, whose tools no other agent sees", async () => {
    const mcpServers = { words: { command: process.execPath, args: [server, "plain"] } };
    const workspace = { agents: [{ name: "poet", prompt: "You are poet.", mcpServers }] };
    const steps = [
      starts("a", "poet"),
      starts("b", "explore"),
      says("ok"),
      of("a", calls(["words-echo", { words: "hello" }]), says("done")),
      of("b", says("done")),
    ];
    await onStage(steps, { workspace }, async ({ session, requests, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "words-echo")).toEqual([expect.stringContaining("hello")]);
      expect(toolNames(first("a"))).toContain("words-echo");
      for (const agent of ["main", "b"]) {
        for (const request of requests(agent)) expect(JSON.stringify(request.tools)).not.toContain("words-");
      }
    });
  });
});

describe("agents of the program", () => {
  const poet = { name: "poet", prompt: "You are poet.", description: "rhymes" };
  const withAgent = (more: object, options: StageOptions = {}): StageOptions => ({
    ...options,
    workspace: { agents: [{ ...poet, ...more }], ...options.workspace },
  });

  it("SDK-01 SDK-09 agents of a program are listed with their description and can be started", async () => {
    await onStage(started("poet"), withAgent({}), async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("main").tools.find(({ name }) => name === "task")?.description).toContain("- poet: rhymes");
      expect(first("a").system).toContain("You are poet.");
    });
  });

  it.each([
    [{ name: "poet" }, "poet: prompt is missing"],
    [{ name: "poet", prompt: " \n" }, "poet: prompt is missing"],
    [{ prompt: "You are poet." }, "name is missing"],
  ])("SDK-02 agents of a program are refused without a name and a prompt: %j", async (given, why) => {
    await expect(onStage([], { workspace: { agents: [given] } }, async () => undefined)).rejects.toMatchObject({
      message: `A custom agent cannot be used: ${why}.`,
      hint: expect.stringContaining("needs a name and a prompt"),
    });
  });

  it("SDK-05 SDK-34 agents of a program have exactly the tools they list, and no others exist for them", async () => {
    const steps = started("poet", calls(["create", { path: "x.txt", file_text: "x" }]), says("done"));
    await onStage(steps, withAgent({ tools: ["view", "grep"] }), async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("a"))).toEqual(["view", "grep"]);
      expect(resultsOf(session.events, "create")[0]).toContain("Tool 'create' does not exist");
    });
  });

  it.each([[null], [undefined]])(
    "SDK-06 SDK-41 an agent with tools: %s has all tools of the session, also those hidden from the default agent",
    async (tools) => {
      const toolChoice = { hiddenFromMain: ["glob", "bash"], excluded: ["grep"] };
      const options = withAgent(tools === undefined ? {} : { tools }, { tools: { choice: toolChoice } });
      const steps = started("poet", calls(["glob", { pattern: "*" }]), says("done"));
      await onStage(steps, { ...options, files: { "found.txt": "x" } }, async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        const main = toolNames(first("main"));
        expect(main.filter((name) => ["glob", "bash", "grep"].includes(name))).toEqual([]);
        const onlyMain = new Set(["ask_user", "skill", "exit_plan_mode"]);
        const inherited = [...main.filter((name) => !onlyMain.has(name)), "glob", "bash"];
        expect(toolNames(first("a")).toSorted()).toEqual(inherited.toSorted());
        expect(resultsOf(session.events, "glob")).toEqual([expect.stringContaining("found.txt")]);
      });
    },
  );

  it("SDK-41 an agent without a tool list that leads has the tools hidden from the default agent", async () => {
    const options = withAgent(
      {},
      { agents: { main: "poet" }, tools: { choice: { hiddenFromMain: ["glob"], excluded: ["grep"] } } },
    );
    await onStage([says("hi")], options, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("main"))).toContain("glob");
      expect(toolNames(first("main"))).not.toContain("grep");
    });
  });

  it("SDK-41 an agent has no more tools than its parent, and a deny rule applies to an inherited tool", async () => {
    const agents = [
      { name: "reader", prompt: "You read.", tools: ["view", "task"] },
      { name: "heir", prompt: "You inherit." },
    ];
    const steps = [
      starts("a", "reader"),
      starts("c", "heir"),
      says("ok"),
      of("a", starts("b", "heir"), says("done")),
      of("b", says("done")),
      of("c", calls(["create", { path: "x.txt", file_text: "x" }]), says("done")),
    ];
    const toolChoice = { hiddenFromMain: ["create"] };
    const settings = { "home:settings.json": JSON.stringify({ permissions: { deny: ["write"] } }) };
    await onStage(
      steps,
      { workspace: { agents }, tools: { choice: toolChoice }, files: settings },
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        const allowed = toolNames(first("a"));
        expect(toolNames(first("b")).filter((name) => !allowed.includes(name))).toEqual([]);
        expect(toolNames(first("c"))).toContain("create");
        expect(dataOf(session.events, "troupe.permission")).toEqual(
          expect.arrayContaining([expect.objectContaining({ decision: "denied", by: "rule" })]),
        );
      },
    );
  });

  it("SDK-08 agents of a program cannot be chosen by a model with infer: false, but by the user", async () => {
    const steps = [starts("a", "poet"), says("ok")];
    await onStage(steps, withAgent({ infer: false }), async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(JSON.stringify(first("main").tools)).not.toContain("poet");
      expect(resultsOf(session.events, "task")[0]).toContain('There is no agent "poet"');
    });
    await onStage(
      [says("hi")],
      withAgent({ infer: false }, { agents: { main: "poet" } }),
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(first("main").system).toContain("You are poet.");
      },
    );
  });

  it("SDK-10 SDK-11 SDK-12 an agent receives its skills in full, inherits none, and a missing one is reported", async () => {
    const files = { "more/verse/SKILL.md": "---\nname: verse\ndescription: how to rhyme\n---\nRhyme in pairs.\n" };
    const agents = [
      { ...poet, skills: ["verse", "prose"] },
      { name: "mute", prompt: "You are mute." },
    ];
    const steps = [
      starts("a", "poet"),
      starts("b", "mute"),
      says("ok"),
      of("a", says("done")),
      of("b", calls(["skill", { skill: "verse" }]), says("done")),
    ];
    const workspace = { agents, skillDirectories: ["more"] };
    await onStage(steps, { files, workspace }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(texts(first("a"))[0]).toContain("Rhyme in pairs.");
      expect(JSON.stringify(first("b"))).not.toContain("Rhyme in pairs.");
      expect(toolNames(first("b"))).not.toContain("skill");
      expect(toolNames(first("main"))).toContain("skill");
      expect(resultsOf(session.events, "skill")[0]).toContain("Tool 'skill' does not exist");
      expect(dataOf(session.events, "session.warning").map(({ message }) => message)).toEqual([
        expect.stringContaining('no skill called "prose"'),
      ]);
    });
  });

  it("SDK-25 a tool hidden from the main agent works for an agent that lists it", async () => {
    const steps = started("poet", calls(["glob", { pattern: "*" }]), says("done"));
    const options = withAgent({ tools: ["glob"] }, { tools: { choice: { hiddenFromMain: ["glob"] } } });
    await onStage(steps, { ...options, files: { "found.txt": "x" } }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("main"))).not.toContain("glob");
      expect(toolNames(first("a"))).toEqual(["glob"]);
      expect(resultsOf(session.events, "glob")[0]).toContain("found.txt");
    });
  });

  it.each([
    [
      "an allow-list",
      { available: ["view", "grep", "task"] },
      { main: ["view", "grep", "task"], agent: ["view", "grep"] },
    ],
    ["a block-list", { excluded: ["glob"] }, { main: ["view", "grep", "task"], agent: ["view", "grep"] }],
    [
      "the session's filter, then the main agent's: what both name is nobody's",
      { excluded: ["grep"], hiddenFromMain: ["grep", "view"] },
      { main: ["glob", "task"], agent: ["view", "glob"] },
    ],
  ])(
    "SDK-26 SDK-27 SDK-28 %s applies to the main agent and to the agents it starts",
    async (_title, toolChoice, expected) => {
      const looked = ["view", "glob", "grep", "task"];
      const options = withAgent({ tools: ["view", "glob", "grep"] }, { tools: { choice: toolChoice } });
      await onStage(started("poet"), options, async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        expect({
          main: toolNames(first("main")).filter((name) => looked.includes(name)),
          agent: toolNames(first("a")),
        }).toEqual(expected);
      });
    },
  );
});
