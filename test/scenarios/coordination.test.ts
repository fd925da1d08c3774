import { describe, expect, it } from "vitest";
import * as z from "zod";
import { deferred } from "../../src/lib/deferred.ts";
import { forAgent, otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, fails, says, stalls, withUsage } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { storyByAgent } from "../../src/testing/story.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { agent } from "../support/agent.ts";
import { agentOf, agentPool, storeWith, task } from "../support/agent-pool.ts";
import { dataOf, type Stage } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";

const named = (name: string): Tool =>
  defineTool({
    name,
    description: name,
    input: z.looseObject({}),
    readOnly: true,
    run: async () => ({ content: `${name} ran` }),
  });
const tools = ["view", "glob", "grep", "edit", "skill"].map(named);

const run = (...ids: string[]) => runAs("scout", ...ids);
const runAs = (role: string, ...ids: string[]) =>
  calls(["subagents_run", { agents: ids.map((id) => ({ id, role, task: `look at ${id}` })) }]);
const submit = (summary: string) => calls(["submit_result", { status: "completed", summary }]);
const is = (id: string) => (request: ModelRequest) => agentOf(request) === id;
const isWorker = (request: ModelRequest) => agentOf(request) !== undefined;

interface Result {
  readonly id: string;
  readonly status: string;
  readonly summary: string;
  readonly displayName: string;
  readonly meta: { readonly iterations: number; readonly outputTokensEstimate: number };
}

function resultsOf({ session }: Stage): Result[] {
  const [content] = session.events.flatMap(({ agentId, type, data }) =>
    agentId === undefined && type === "tool.execution_complete"
      ? (data.result?.content ?? data.error?.message ?? [])
      : [],
  );
  return JSON.parse(content ?? "{}").agents;
}

describe("coordinated workers", () => {
  it("BLX-02, BLX-23, BLX-25: workers run in the session's loop with events for each step, and return only results", async () => {
    const stage = await agentPool(
      [run("a"), says("all done"), forAgent(is("a"), calls(["view", { path: "." }]), submit("found it"))],
      { tools },
    );
    const { session, model } = stage;
    expect(await session.sendAndWait({ prompt: "ask a scout" })).toEqual({ kind: "done", answer: "all done" });
    expect(resultsOf(stage)).toMatchObject([
      {
        id: "a",
        role: "scout",
        displayName: "Scout",
        status: "completed",
        summary: "found it",
        meta: { iterations: 2 },
      },
    ]);
    expect(storyByAgent(session.events)).toMatchObject({
      a: [
        "troupe.subagent_step",
        "subagent.started",
        "user.message",
        "assistant.turn_start",
        "troupe.usage",
        "assistant.message",
        "troupe.subagent_step",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.turn_end",
        "assistant.turn_start",
        "troupe.usage",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.turn_end",
        "subagent.completed",
        "troupe.subagent_step",
        "troupe.subagent_step",
      ],
    });
    expect(dataOf(session.events, "troupe.subagent_step").map(({ stepId, status }) => [stepId, status])).toEqual([
      ["provisioned-tools", "info"],
      ["tool-view", "running"],
      ["tool-view", "completed"],
      ["result", "completed"],
    ]);
    const [main, worker] = model.requests;
    expect(worker).toMatchObject({ model: main?.model, messages: [{ role: "user", content: "look at a" }] });
    expect(worker?.tools.map(({ name }) => name)).toEqual([
      "view",
      "glob",
      "grep",
      "skill",
      "environment_detect",
      "memory_read",
      "plan_read",
      "submit_result",
    ]);
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toMatch(/view ran|Result accepted/);
    expect(session.agents.tasks?.view("a")).toMatchObject({
      agentType: "scout",
      status: "completed",
      mode: "background",
    });
    expect((await session.agents.tasks?.report("a"))?.answers.at(-1)?.response).toContain("found it");
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
  });

  it("BLX-17: workers are ended at their limit of turns, and the result says so", async () => {
    const stage = await agentPool([run("a"), says("ok"), forAgent(is("a"), ...Array(8).fill(calls(["view"])))], {
      tools,
      workers: { limits: { turns: 8 } },
    });
    await stage.session.sendAndWait({ prompt: "go" });
    expect(resultsOf(stage)).toMatchObject([
      { status: "blocked", summary: "max iterations reached without submit_result", meta: { iterations: 8 } },
    ]);
    expect(stage.session.agents.tasks?.view("a")).toMatchObject({ status: "failed", reason: "limit" });
    expect(checkTasks(stage.session.events, { settled: true })).toEqual([]);
  });

  it("BLX-18: workers have a limit on output, counted by the provider or else by length", async () => {
    const wordy = calls(["view", { path: "x".repeat(500) }]);
    const stage = await agentPool(
      [
        run("counted", "guessed"),
        says("ok"),
        forAgent(is("counted"), withUsage(calls(["view"]), { outputTokens: 150 }), submit("too late")),
        forAgent(is("guessed"), wordy, submit("too late")),
      ],
      { tools, workers: { limits: { outputTokens: 100 } } },
    );
    await stage.session.sendAndWait({ prompt: "go" });
    for (const { status, summary, meta } of resultsOf(stage)) {
      expect([status, summary, meta.iterations]).toEqual(["blocked", "limit of 100 output tokens reached", 1]);
      expect(meta.outputTokensEstimate).toBeGreaterThanOrEqual(100);
    }
  });

  it("BLX-19: workers are ended by the timeout when the model does not answer, and the others are not", async () => {
    const stage = await agentPool(
      [run("slow", "fast"), says("ok"), forAgent(is("slow"), stalls()), forAgent(is("fast"), submit("here"))],
      { tools, workers: { limits: { durationMs: 200 } } },
    );
    await stage.session.sendAndWait({ prompt: "go" });
    expect(resultsOf(stage).map(({ summary }) => summary)).toEqual(["time limit of 0.2 s reached", "here"]);
  });

  it("BLX-20: a worker is stopped with all its calls and without the others, and its result is cancelled", async () => {
    const released: string[] = [];
    const stopped = deferred<string>();
    const view = defineTool({
      name: "view",
      description: "waits",
      input: z.looseObject({}),
      run: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            stopped.resolve("tool");
            reject(signal.reason);
          });
        }),
    });
    const stage = await agentPool(
      [
        run("one", "two"),
        says("ok"),
        forAgent(is("one"), calls(["view"])),
        forAgent(is("two"), stalls(stopped.promise, submit("fine"))),
      ],
      { tools: [view], place: { release: async () => void released.push("released") } },
    );
    const { session } = stage;
    const done = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => session.agents.tasks?.view("one")?.lastActivity).toBe("view");
    expect(await session.agents.tasks?.cancel("one")).toBe(true);
    expect(await done).toEqual({ kind: "done", answer: "ok" });
    expect(resultsOf(stage).map(({ status, summary }) => [status, summary])).toEqual([
      ["blocked", "cancelled"],
      ["completed", "fine"],
    ]);
    expect(await stopped.promise).toBe("tool");
    expect(released).toEqual(["released", "released"]);
    expect(session.agents.tasks?.list().map(({ status }) => status)).toEqual(["cancelled", "completed"]);
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
  });

  it("workers are all stopped with the answer", async () => {
    const { session } = await agentPool([run("one", "two"), forAgent(isWorker, stalls(), stalls())], { tools });
    const done = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => session.agents.tasks?.list().map(({ status }) => status)).toEqual(["running", "running"]);
    session.abort();
    expect(await done).toEqual({ kind: "aborted" });
    await expect
      .poll(() => session.agents.tasks?.list().map(({ status }) => status))
      .toEqual(["cancelled", "cancelled"]);
  });

  it("BLX-14, BLX-21: a worker has no result without submit_result, and a failure of the model is named", async () => {
    const stage = await agentPool(
      [
        run("talker", "broken"),
        says("ok"),
        forAgent(is("talker"), says("I saw things")),
        forAgent(is("broken"), fails(400)),
      ],
      { tools },
    );
    await stage.session.sendAndWait({ prompt: "go" });
    expect(resultsOf(stage).map(({ status, summary }) => [status, summary])).toEqual([
      ["blocked", "max iterations reached without submit_result"],
      ["blocked", expect.stringMatching(/^error: .*scripted failure/)],
    ]);
    expect(dataOf(stage.session.events, "subagent.failed")).toHaveLength(2);
  });

  it("BLX-11, BLX-35: workers cannot call tools beyond their groups, agents or further workers", async () => {
    const stage = await agentPool(
      [
        run("a"),
        says("ok"),
        forAgent(
          is("a"),
          calls(["edit"], ["subagents_run", { agents: [] }], ["task", {}], ["subagents.run", {}]),
          submit("ok"),
        ),
      ],
      { tools },
    );
    await stage.session.sendAndWait({ prompt: "go" });
    const errors = dataOf(stage.session.events, "tool.execution_complete").flatMap(({ error }) => error?.message ?? []);
    expect(errors).toHaveLength(4);
    for (const error of errors) expect(error).toMatch(/^Tool '[\w.]+' does not exist/);
    expect(stage.session.agents.tasks?.list()).toHaveLength(1);
  });

  it("BLX-31: subagents.run starts workers as subagents_run does", async () => {
    const dotted = calls(["subagents.run", { agents: [{ id: "a", role: "review", task: "t" }] }]);
    const stage = await agentPool([dotted, says("ok"), forAgent(is("a"), submit("yes"))], { tools });
    await stage.session.sendAndWait({ prompt: "go" });
    expect(resultsOf(stage)).toMatchObject([{ displayName: "Review", summary: "yes" }]);
  });

  it("workers have the rights and the budget of the agent that requests them", async () => {
    const stage = await agentPool(
      [
        task("boss", "boss"),
        says("end"),
        forAgent("boss", run("w"), says("never said")),
        forAgent(is("w"), calls(["view"]), calls(["view"]), submit("never said")),
      ],
      { tools, agents: [agent("boss", { tools: ["view", "subagents_run"], limits: { turns: 3 } })] },
    );
    const { session, model } = stage;
    await session.sendAndWait({ prompt: "go" });
    const worker = model.requests.find(is("w"));
    expect(worker?.tools.map(({ name }) => name)).toEqual([
      ...["view", "environment_detect", "memory_read", "plan_read", "submit_result"],
    ]);
    expect(session.agents.tasks?.view("w")).toMatchObject({ parentId: "boss", status: "failed", reason: "limit" });
    expect(session.agents.tasks?.usage("boss").calls).toBe(3);
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
  });

  it("workers with a role that a rule denies are not started", async () => {
    const { session } = await agentPool([run("a"), says("ok")], {
      tools,
      permissions: { allTools: true, denyTools: ["agent(scout)"] },
    });
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.list()).toEqual([]);
  });

  it("BLX-36: workers can have a role of the settings", async () => {
    const roles = [{ id: "api_reader", label: "API Reader", prompt: "Read interfaces.", groups: ["workspace"] }];
    const stage = await agentPool([runAs("api_reader", "a"), says("ok"), forAgent(is("a"), submit("read"))], {
      tools,
      workers: { roles },
    });
    await stage.session.sendAndWait({ prompt: "go" });
    expect(resultsOf(stage)).toMatchObject([{ displayName: "API Reader", summary: "read" }]);
  });

  it("workers are listed as interrupted when the process ended, and do not run again", async () => {
    const first = await agentPool([run("a"), forAgent(is("a"), stalls())], { tools });
    void first.session.sendAndWait({ prompt: "go" });
    await expect.poll(() => first.session.agents.tasks?.view("a")?.status).toBe("running");
    const store = await storeWith(first.session.events);
    await first.session.close();
    const { session, model } = await agentPool([otherwise(says("noted"))], { store, tools, resume: "session-1" });
    await session.queue.whenIdle();
    expect(session.agents.tasks?.view("a")?.reason).toBe("interrupted");
    await session.agents.tasks?.send("a", "go on");
    await expect.poll(() => session.agents.tasks?.view("a")?.status).toBe("failed");
    expect(model.requests.filter(is("a"))).toEqual([]);
    await session.close();
  });
});
