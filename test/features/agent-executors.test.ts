/**
 * An agent is run as a part of the session or by an executor of the process; `SESSION_BASED_SUBAGENTS` decides for
 * `task`. `subagents_run` always brings an executor. All of them pass the same tests.
 */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/lib/json.ts";
import { calls, fails, says, stalls } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { LOCK_FILE } from "../../src/store/lock-holder.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";
import { HANG_MS } from "../support/work.ts";
import { of, onStage, resultsOf, type StageOptions, texts, toolNames } from "./stage.ts";

interface Way {
  readonly tool: "task" | "subagents_run";
  /** Starts agents with these names; each is asked for `@name look around`. */
  start(...names: readonly string[]): ReturnType<typeof calls>;
  /** What an agent does to hand in its answer. */
  answers(text: string): ReturnType<typeof calls>;
  readonly agentName: string;
  readonly environment?: Record<string, string>;
}

const byTask: Way = {
  tool: "task",
  start: (...names) => calls(...names.map((name) => ["task", { ...work(name), agent_type: "explore", name }] as const)),
  answers: (text) => says(text),
  agentName: "explore",
};

const ways: readonly (readonly [string, Way])[] = [
  ["by the session", { ...byTask, environment: { SESSION_BASED_SUBAGENTS: "on" } }],
  ["by an executor", { ...byTask, environment: { SESSION_BASED_SUBAGENTS: "off" } }],
  [
    "as a worker",
    {
      tool: "subagents_run",
      start: (...names) =>
        calls(["subagents_run", { agents: names.map((id) => ({ id, role: "scout", task: work(id).prompt })) }]),
      answers: (summary) => calls(["submit_result", { status: "completed", summary }]),
      agentName: "scout",
    },
  ],
];

const work = (name: string): Record<"description" | "prompt", Json & string> => ({
  description: `do ${name}`,
  prompt: `@${name} look around`,
});

describe.each(ways)("ORC-57 an agent that is run %s", (_way, way) => {
  const files = { "a.txt": "hello" };
  const stage = (steps: Parameters<typeof onStage>[0], work: Parameters<typeof onStage>[2], more: StageOptions = {}) =>
    onStage(steps, { files, ...(way.environment && { environment: way.environment }), ...more }, work);

  it("ORC-57 an agent sees nothing of its parent's conversation, only reads, and its answer is the result", async () => {
    const steps = [way.start("a"), says("done"), of("a", calls(["view", { path: "a.txt" }]), way.answers("one file"))];
    await stage(steps, async ({ session, first, requests }) => {
      expect(await session.sendAndWait({ prompt: "the word is Pomegranate" })).toEqual({
        kind: "done",
        answer: "done",
      });
      expect(texts(first("a"))).toEqual(["@a look around"]);
      expect(JSON.stringify(requests("a"))).not.toContain("Pomegranate");
      expect(toolNames(first("a"))).toEqual(expect.arrayContaining(["view", "glob", "grep"]));
      for (const name of ["create", "edit", "task", "subagents_run"]) expect(toolNames(first("a"))).not.toContain(name);
      expect(resultsOf(session.events, way.tool)[0]).toContain("one file");
      // Its words are its own: the parent reads the result, and nothing else of it.
      expect(texts(requests("main")[1] ?? first("main")).at(-1)).toContain("one file");
    });
  });

  it("ORC-57 an agent has one record with one end, and events of its own that name the call", async () => {
    const steps = [way.start("a", "b"), says("done"), ...["a", "b"].map((name) => of(name, way.answers(`by ${name}`)))];
    await stage(steps, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(session.agents.tasks?.list()).toMatchObject(
        ["a", "b"].map((id) => ({ id, agentType: way.agentName, status: "completed", mode: expect.any(String) })),
      );
      const started = session.events.filter(({ type }) => type === "subagent.started");
      const ended = session.events.filter(({ type }) => type === "subagent.completed");
      const asked = dataOf(session.events, "tool.execution_start").map(({ toolCallId }) => toolCallId);
      for (const events of [started, ended]) {
        expect(events.map(({ agentId }) => agentId).toSorted()).toEqual(["a", "b"]);
        for (const { data } of events) {
          expect(data).toMatchObject({ agentName: way.agentName, toolCallId: expect.toBeOneOf(asked) });
        }
      }
      expect(checkTasks(session.events, { settled: true })).toEqual([]);
      expectPaired(session.events);
    });
  });

  it("ORC-57 an agent fires the hooks of subagents, which may add to its prompt", async () => {
    const steps = [way.start("a"), says("done"), of("a", way.answers("ok"))];
    const settings = {
      hooks: {
        subagentStart: [{ type: "command", bash: `echo '{"additionalContext":"Mind the gap."}'` }],
        subagentStop: [{ type: "command", bash: "cat >> $HOME/stopped" }],
      },
    };
    await stage(
      steps,
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(texts(first("a"))[0]).toMatch(/^Mind the gap\./);
        const hooks = dataOf(session.events, "hook.end").map(({ hookType, success }) => [hookType, success]);
        expect(hooks).toEqual([
          ["subagentStart", true],
          ["subagentStop", true],
        ]);
      },
      { files: { ...files, "home:settings.json": JSON.stringify(settings) } },
    );
  });

  it("ORC-57 an agent's failure is reported as an error, and the parent continues", async () => {
    const steps = [way.start("a"), says("without it"), of("a", fails(400, { message: "no such thing" }))];
    await stage(steps, async ({ session }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "without it" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "failed", reason: "error" });
      expect(dataOf(session.events, "subagent.failed")).toMatchObject([
        { agentName: way.agentName, error: expect.stringContaining("no such thing") },
      ]);
      expect(resultsOf(session.events, way.tool)[0]).toContain("no such thing");
      expect(dataOf(session.events, "session.error")).toEqual([]);
    });
  });

  it("ORC-57 an agent is stopped with the answer that started it", async () => {
    await stage([way.start("a"), of("a", stalls())], async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => requests("a").length).toBe(1);
      session.abort();
      expect(await sent).toEqual({ kind: "aborted" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "cancelled" });
      expect(requests()).toHaveLength(2);
    });
  });

  it("ORC-57 an agent is interrupted when its process ends; its parent is notified once; its answer stays readable", async () => {
    const steps = [
      way.start("a"),
      way.start("b"),
      of("a", way.answers("one file")),
      of("b", stalls()),
      says("I see that b was cut off."),
    ];
    await stage(steps, async ({ session, requests, home, folder }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => requests("b").length).toBe(1);
      const { again, close } = await afterKill({ home, folder, sessionId: session.id });
      session.abort();
      await sent;
      expect(again.agents.tasks?.list().map(({ id, status, reason }) => [id, status, reason])).toEqual([
        ["a", "completed", "finished"],
        ["b", "idle", "interrupted"],
      ]);
      expect((await again.agents.tasks?.report("a"))?.answers.at(-1)?.response).toContain("one file");
      await again.sendAndWait({ prompt: "what happened?" });
      expect(JSON.stringify(requests("main").at(-1)?.messages)).toMatch(/cut off|interrupted/);
      expect(checkTasks(again.events, { settled: true })).toEqual([]);
      await close();
    });
  });

  it("ORC-57 an agent counts for the budget of the session", async () => {
    const steps = [way.start("a"), of("a", calls(["view", { path: "a.txt" }]), way.answers("ok")), says("end")];
    await stage(
      steps,
      async ({ session }) => {
        expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "limit" });
        expect(dataOf(session.events, "troupe.usage")).toHaveLength(2);
      },
      { limits: { turns: 2 } },
    );
  });
});

describe("ORC-57 SESSION_BASED_SUBAGENTS", () => {
  const background = { mode: "background" };
  const steps = (more: readonly Parameters<typeof of>[1][]) => [
    calls(["task", { ...work("a"), agent_type: "explore", name: "a", ...background }]),
    says("started"),
    says("heard"),
    calls(["write_agent", { agent_id: "a", message: "and then?" }]),
    says("asked"),
    says("heard again"),
    of("a", says("first answer"), ...more),
  ];

  it("ORC-57 without SESSION_BASED_SUBAGENTS an agent takes messages in its process, but not after it", async () => {
    const environment = { SESSION_BASED_SUBAGENTS: "off" };
    await onStage(steps([]), { environment }, async ({ session, reopen }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "idle", reason: "finished" });
      expect(dataOf(session.events, "subagent.selected")).toMatchObject([{ agentName: "explore" }]);
      const again = await reopen();
      await again.sendAndWait({ prompt: "ask it" });
      await again.agents.tasks?.waitForAll(HANG_MS);
      const report = await again.agents.tasks?.report("a");
      expect([report?.task.status, report?.error]).toEqual([
        "idle",
        "The agent ended with its process and cannot be continued.",
      ]);
      expect(report?.answers[0]?.response).toBe("first answer");
    });
  });

  it("ORC-57 with SESSION_BASED_SUBAGENTS an agent continues after its process has ended", async () => {
    const environment = { SESSION_BASED_SUBAGENTS: "on" };
    await onStage(steps([says("second answer")]), { environment }, async ({ session, reopen }) => {
      await session.sendAndWait({ prompt: "go" });
      const again = await reopen();
      await again.sendAndWait({ prompt: "ask it" });
      await again.agents.tasks?.waitForAll(HANG_MS);
      expect((await again.agents.tasks?.report("a"))?.answers.map(({ response }) => response)).toEqual([
        "first answer",
        "second answer",
      ]);
    });
  });
});

/** The session as another process finds it after a kill at this moment. */
async function afterKill(what: { home: string; folder: string; sessionId: string }) {
  const home = `${what.home}-after`;
  cpSync(what.home, home, { recursive: true });
  rmSync(join(home, "session-state", what.sessionId, LOCK_FILE));
  const runtime = createRuntime({ environment: { PATH: process.env.PATH, TROUPE_SANDBOX: "off" }, home });
  const again = await runtime.resumeSession(what.sessionId, { cwd: what.folder, model: { name: "alpha/large" } });
  const close = async (): Promise<void> => {
    await again.close();
    await runtime.close();
  };
  return { again, close };
}
