import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, fails, says, stalls } from "../../src/model/faux/faux-step.ts";
import { story } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, resultsOf, starts, texts } from "./stage.ts";

/** A hook that keeps what it reads, and says this. */
const hook = (point: string, says: object = {}, more: object = {}) => ({
  [point]: [
    { type: "command", bash: `cat >> ${point}.jsonl; echo >> ${point}.jsonl; echo '${JSON.stringify(says)}'`, ...more },
  ],
});
const files = (...hooks: object[]) => ({
  "home:hooks/hooks.json": JSON.stringify({ version: 1, hooks: Object.assign({}, ...hooks) }),
});
const heardBy = (folder: string, point: string): Record<string, unknown>[] =>
  readFileSync(join(folder, `${point}.jsonl`), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("hooks around agents", () => {
  it("ORC-49 ORC-50 ORC-54 a subagentStart hook's text precedes the agent's task, and the steps follow in order", async () => {
    const steps = [starts("a", "explore"), says("ok"), of("a", says("done"))];
    const options = {
      files: files(hook("subagentStart", { additionalContext: "Mind the gap." }), hook("subagentStop")),
    };
    await onStage(steps, options, async ({ session, first, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(texts(first("a"))[0]).toMatch(/^Mind the gap\.\n\n@a look around/);
      // The id of an agent in hooks is that of the session and its own.
      const about = { sessionId: session.id, cwd: folder, transcriptPath: expect.stringContaining(session.id) };
      const who = { agentName: "explore", agentDisplayName: "Explore Agent", agentId: "a", agentType: "explore" };
      const payload = { ...about, ...who, timestamp: expect.any(Number) };
      const agentDescription = session.agents.definitions().find(({ name }) => name === "explore")?.description;
      expect(agentDescription).toMatch(/./);
      expect(heardBy(folder, "subagentStart")).toEqual([{ ...payload, agentDescription }]);
      expect(heardBy(folder, "subagentStop")).toEqual([
        { ...payload, response: "done", stopReason: "end_turn", stop_hook_active: false },
      ]);
      const own = session.events.filter(({ agentId, type }) => agentId === "a" && !type.startsWith("troupe."));
      expect(story(own).map((line) => line.slice(2))).toEqual([
        "subagent.selected",
        "subagent.started",
        "hook.start",
        "hook.end",
        "user.message",
        "assistant.turn_start",
        "assistant.message",
        "assistant.turn_end",
        "hook.start",
        "hook.end",
        "subagent.completed",
        "subagent.deselected",
      ]);
    });
  });

  it("ORC-54 subagentStop fires for an agent that fails as for one that answers", async () => {
    const steps = [starts("a", "explore"), says("ok"), of("a", fails(400, { message: "no such thing" }))];
    await onStage(steps, { files: files(hook("subagentStart"), hook("subagentStop")) }, async ({ session, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(heardBy(folder, "subagentStart")).toHaveLength(1);
      expect(heardBy(folder, "subagentStop")).toMatchObject([
        { agentId: "a", agentDisplayName: "Explore Agent", response: "", stopReason: "error" },
      ]);
    });
  });

  it("ORC-54 subagentStop fires for an agent that is stopped", async () => {
    const steps = [
      starts("a", "explore", { mode: "background" }),
      calls(["bash", { command: "until [ -s subagentStart.jsonl ]; do sleep 0.05; done", description: "wait" }]),
      calls(["stop_agent", { agent_id: "a" }]),
      says("ok"),
      of("a", stalls()),
    ];
    await onStage(steps, { files: files(hook("subagentStart"), hook("subagentStop")) }, async ({ session, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "cancelled" });
      const starting = heardBy(folder, "subagentStart");
      expect(heardBy(folder, "subagentStop")).toMatchObject(
        starting.map(() => ({ agentId: "a", agentName: "explore", response: "", stopReason: "cancelled" })),
      );
      expect(starting).toHaveLength(1);
    });
  });

  it("ORC-54 subagentStop fires for an agent that reaches its limit", async () => {
    const looks = calls(["glob", { pattern: "*" }]);
    const steps = [starts("a", "brief"), says("ok"), of("a", looks, looks, looks)];
    const brief = "---\nname: brief\ndescription: is brief\nlimits:\n  turns: 1\n---\nBe brief.\n";
    const given = { ...files(hook("subagentStop")), "home:agents/brief.md": brief };
    await onStage(steps, { files: given }, async ({ session, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(heardBy(folder, "subagentStop")).toMatchObject([
        { agentId: "a", agentName: "brief", response: "", stopReason: "limit" },
      ]);
    });
  });

  it("ORC-51 a subagentStart hook with a matcher runs only for agents of that name", async () => {
    const steps = [starts("a", "explore"), starts("b", "research"), says("ok"), of("a", says("1")), of("b", says("2"))];
    const options = { files: files(hook("subagentStart", { additionalContext: "Mind." }, { matcher: "research" })) };
    await onStage(steps, options, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect([first("a"), first("b")].map((request) => texts(request)[0]?.startsWith("Mind."))).toEqual([false, true]);
    });
  });

  it("ORC-52 ORC-55 a subagentStop hook that blocks causes another turn with the reason, at most eight times", async () => {
    const steps = [starts("a", "explore"), says("ok"), of("a", ...Array.from({ length: 9 }, () => says("done")))];
    const options = { files: files(hook("subagentStop", { decision: "block", reason: "Look again." })) };
    await onStage(steps, options, async ({ session, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(requests("a")).toHaveLength(9);
      expect(
        requests("a")
          .map((request) => texts(request).at(-1))
          .slice(0, 2),
      ).toEqual(["@a look around", "Look again."]);
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "completed" });
    });
  });
});

describe("hooks around the main agent", () => {
  it("ORC-54 an agentStop hook receives session, folder, transcript and reason, and nothing else", async () => {
    await onStage([says("done")], { files: files(hook("agentStop")) }, async ({ session, folder, home }) => {
      await session.sendAndWait({ prompt: "go" });
      const [payload] = heardBy(folder, "agentStop");
      expect(heardBy(folder, "agentStop")).toEqual([
        {
          sessionId: session.id,
          timestamp: expect.any(Number),
          cwd: folder,
          transcriptPath: expect.stringContaining(join(home, "")),
          stopReason: "end_turn",
          stop_hook_active: false,
        },
      ]);
      expect(readFileSync(String(payload?.transcriptPath), "utf8")).toContain(session.id);
    });
  });

  it("LOOP-21 a preToolUse hook can deny a call: the model reads the denial, and the tool does not run", async () => {
    const steps = [calls(["create", { path: "a.txt", file_text: "x" }]), says("ok")];
    const says_ = { permissionDecision: "deny", permissionDecisionReason: "Not on Sundays." };
    await onStage(steps, { files: files(hook("preToolUse", says_)) }, async ({ session, requests, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(requests("main")[1]?.messages.at(-1)?.content).toContain("Not on Sundays.");
      expect(resultsOf(session.events, "create")[0]).toContain("Not on Sundays.");
      expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([
        { success: false, error: { code: "denied" } },
      ]);
      expect(existsSync(join(folder, "a.txt"))).toBe(false);
    });
  });

  it("ORC-53 ORC-83 the reason of a blocked stop is the next message, for a hooks file and for settings", async () => {
    const once =
      'if [ -e seen ]; then echo \'{}\'; else touch seen; echo \'{"decision":"block","reason":"And the tests?"}\'; fi';
    const hooks = { agentStop: [{ type: "command", bash: once }] };
    const places = [
      { "home:hooks/hooks.json": JSON.stringify({ version: 1, hooks }) },
      { "home:settings.json": JSON.stringify({ hooks }) },
    ];
    for (const place of places) {
      await onStage([says("done"), says("tested")], { files: place }, async ({ session }) => {
        expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "tested" });
        expect(dataOf(session.events, "user.message").map(({ content }) => content)).toEqual(["go", "And the tests?"]);
      });
    }
  });

  it("ORC-53 ORC-55 stderr of a stop hook that exits with code 2 is the next message, at most eight times", async () => {
    const hooks = { agentStop: [{ type: "command", bash: "echo 'The tests fail.' >&2; exit 2" }] };
    const place = { "home:hooks/hooks.json": JSON.stringify({ version: 1, hooks }) };
    const steps = Array.from({ length: 9 }, (_, round) => says(`done ${round}`));
    await onStage(steps, { files: place }, async ({ session }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "done 8" });
      const told = dataOf(session.events, "user.message").map(({ content }) => content);
      expect(told).toEqual(["go", ...Array.from({ length: 8 }, () => "The tests fail.")]);
    });
  });
});
