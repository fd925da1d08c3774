import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { calls, fails, rateLimited, says, stalls, withUsage } from "../../src/model/faux/faux-step.ts";
import { submit } from "../../src/runtime/submit.ts";
import { story } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, resultsOf, type StageOptions, starts, texts } from "./stage.ts";

const background = { mode: "background" };
const reads = (id: string, more: object = {}) => calls(["read_agent", { agent_id: id, ...more }]);
const settingsFile = (subagents: object) => ({ "home:settings.json": JSON.stringify({ subagents }) });

describe("concurrent agents", () => {
  it.each<[string, StageOptions]>([
    ["settings say", { files: settingsFile({ whenFull: "reject" }) }],
    [
      "the environment says, whatever settings say,",
      { files: settingsFile({ whenFull: "queue" }), environment: { TROUPE_SUBAGENT_WHEN_FULL: "reject" } },
    ],
  ])(
    "ORC-10 ORC-29 the third start fails with cap 2 where %s reject, and the message names the cap",
    async (_who, how) => {
      const done = deferred<void>();
      const steps = [
        starts("a", "explore", background),
        starts("b", "explore", background),
        starts("c", "explore", background),
        says("two of three"),
        says("all in"),
        ...["a", "b"].map((name) => of(name, stalls(done.promise, says("found")))),
      ];
      const environment = { ...how.environment, COPILOT_SUBAGENT_MAX_CONCURRENT: "2" };
      const options = { ...how, environment, agents: { wakes: false } };
      await onStage(steps, options, async ({ session }) => {
        const sent = session.sendAndWait({ prompt: "go" });
        await expect.poll(() => resultsOf(session.events, "task").length).toBe(3);
        expect(resultsOf(session.events, "task")[2]).toContain("maximum number of concurrent agents (2)");
        expect(dataOf(session.events, "tool.execution_complete").map(({ success }) => success)).toEqual([
          true,
          true,
          false,
        ]);
        expect(session.agents.tasks?.list().map(({ id }) => id)).toEqual(["a", "b"]);
        done.resolve();
        await sent;
      });
    },
  );

  it.each([
    ["999 clamps to 256", { COPILOT_SUBAGENT_MAX_CONCURRENT: "999" }, 256],
    [
      "TROUPE_SUBAGENT_MAX_CONCURRENT comes first",
      { TROUPE_SUBAGENT_MAX_CONCURRENT: "3", COPILOT_SUBAGENT_MAX_CONCURRENT: "9" },
      3,
    ],
    ["without a value and an account it is 32", {}, 32],
  ])("ORC-10 the cap on concurrent agents is read: %s", async (_what, environment, maxConcurrency) => {
    await onStage([], { environment }, async ({ session }) => {
      expect(session.agents.limits).toMatchObject({ maxConcurrency, whenFull: "queue" });
    });
  });

  it("ORC-10 a wrong TROUPE_SUBAGENT_WHEN_FULL queues agents above the cap, with one warning", async () => {
    await onStage([], { environment: { TROUPE_SUBAGENT_WHEN_FULL: "drop" } }, async ({ session }) => {
      expect(session.agents.limits).toMatchObject({ whenFull: "queue" });
      expect(dataOf(session.events, "session.warning").map(({ message }) => message)).toEqual([
        'TROUPE_SUBAGENT_WHEN_FULL is "drop"; it can be queue or reject.',
      ]);
    });
  });

  it("ORC-10 ORC-29 agents above the cap are queued by default, reported, and start automatically", async () => {
    const done = deferred<void>();
    const steps = [
      starts("a", "explore", background),
      starts("b", "explore", background),
      starts("c", "explore", background),
      says("three of three"),
      ...["a", "b"].map((name) => of(name, stalls(done.promise, says("found")))),
      of("c", says("late")),
    ];
    const environment = { COPILOT_SUBAGENT_MAX_CONCURRENT: "2" };
    await onStage(steps, { environment, agents: { wakes: false } }, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => resultsOf(session.events, "task").length).toBe(3);
      expect(resultsOf(session.events, "task").map((text) => text.includes("it is queued"))).toEqual([
        false,
        false,
        true,
      ]);
      expect(session.agents.tasks?.view("c")).toMatchObject({ status: "queued", waitingFor: "a free slot" });
      expect(requests("c")).toEqual([]);
      done.resolve();
      await sent;
      await expect.poll(() => session.agents.tasks?.view("c")?.status).toBe("idle");
    });
  });

  it("ORC-36 idle agents free their slots, and a message to an idle agent waits for a slot", async () => {
    const done = deferred<void>();
    const steps = [
      starts("a", "explore", background),
      says("one"),
      starts("b", "explore", background),
      calls(["write_agent", { agent_id: "a", message: "and then?" }]),
      says("two"),
      of("a", says("first"), says("second")),
      of("b", stalls(done.promise, says("b is done"))),
    ];
    const environment = { COPILOT_SUBAGENT_MAX_CONCURRENT: "1" };
    await onStage(steps, { environment, agents: { wakes: false } }, async ({ session, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "idle" });
      const sent = session.sendAndWait({ prompt: "go on" });
      await expect.poll(() => resultsOf(session.events, "write_agent").length).toBe(1);
      await expect.poll(() => requests("b").length).toBe(1);
      expect(requests("a")).toHaveLength(1);
      done.resolve();
      await sent;
      expect(requests("a").map((request) => texts(request).at(-1))).toEqual(["@a look around", "and then?"]);
    });
  });
});

describe("an agent in the background", () => {
  it("ORC-27 ORC-58 ORC-60 a background agent returns its id at once, and its end notifies an idle main agent", async () => {
    const done = deferred<void>();
    const steps = [
      starts("a", "explore", background),
      says("I shall tell you."),
      says("It found a lighthouse."),
      of("a", stalls(done.promise, says("a lighthouse"))),
    ];
    const environment = { TROUPE_MULTI_TURN_AGENTS: "off" };
    await onStage(steps, { environment }, async ({ session, heard, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => requests("main").length).toBe(2);
      expect(resultsOf(session.events, "task")[0]).toMatch(/agent_id: a\b/);
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "running", mode: "background" });
      done.resolve();
      expect(await sent).toEqual({ kind: "done", answer: "It found a lighthouse." });
      expect(dataOf(session.events, "system.notification")).toMatchObject([
        { kind: { type: "agent_completed", agentId: "a", agentType: "explore", status: "completed" } },
      ]);
      // Created, running, completed, and heard of.
      const changes = heard.filter(({ type }) => type.startsWith("troupe.task_")).length;
      expect(changes).toBe(4);
      expect(heard.filter(({ type }) => type === "session.background_tasks_changed")).toHaveLength(changes);
    });
  });

  it("ORC-34 ORC-35 ORC-37 ORC-42 ORC-43 ORC-45 ORC-59 a background agent is idle after its answer and takes messages", async () => {
    const steps = [
      starts("a", "explore", background),
      says("started"),
      calls(["write_agent", { agent_id: "a", message: "and how tall?" }]),
      says("asked"),
      reads("a", { since_turn: 1 }),
      says("twelve metres"),
      of("a", says("a lighthouse"), says("twelve metres")),
    ];
    await onStage(steps, {}, async ({ session, requests }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "twelve metres" });
      expect(dataOf(session.events, "system.notification")).toMatchObject([
        { kind: { type: "agent_idle", agentId: "a" } },
        { kind: { type: "agent_idle", agentId: "a" } },
      ]);
      expect(session.agents.tasks?.get("a")).toMatchObject({
        status: "idle",
        answers: [
          { number: 1, response: "a lighthouse" },
          { number: 2, message: "and how tall?", response: "twelve metres" },
        ],
      });
      expect(requests("a").map(texts).at(-1)).toEqual(["@a look around", "a lighthouse", "and how tall?"]);
      const [read = ""] = resultsOf(session.events, "read_agent");
      expect(read).toContain("twelve metres");
      expect(read).not.toContain("a lighthouse");
    });
    const environment = { TROUPE_MULTI_TURN_AGENTS: "off" };
    await onStage([...steps.slice(0, 2), says("end"), ...steps.slice(-1)], { environment }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(session.agents.tasks?.view("a")).toMatchObject({ status: "completed" });
    });
  });

  it("ORC-31 ORC-42 ORC-44 ORC-47 a background agent can be inspected while it works: record, progress, intent, list", async () => {
    const done = deferred<void>();
    const steps = [
      starts("a", "explore", { ...background, model: "alpha/small" }),
      calls(["write_agent", { agent_id: "a", message: "hurry" }]),
      async () => {
        await expect.poll(() => asked()).toBe(2);
        return reads("a", { wait: false });
      },
      calls(["list_agents", {}]),
      says("started"),
      says("done"),
      of(
        "a",
        [{ type: "text", delta: "First I look for modules.\nThen at tests." }, ...calls(["glob", { pattern: "*.ts" }])],
        stalls(done.promise, says("nothing")),
      ),
    ];
    let asked = (): number => 0;
    await onStage(steps, { agents: { wakes: false } }, async ({ session, requests }) => {
      asked = () => requests("a").length;
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => resultsOf(session.events, "list_agents").length).toBe(1);
      const [call] = dataOf(session.events, "tool.execution_start");
      expect(session.agents.tasks?.snapshot("a")).toEqual({
        id: "a",
        type: "agent",
        ownerId: "main",
        toolCallId: call?.toolCallId,
        agentType: "explore",
        displayName: "Explore Agent",
        description: "do a",
        prompt: expect.stringMatching(/hurry|@a look around/),
        modelOverride: "alpha/small",
        resolvedModel: "small",
        executionMode: "background",
        canPromoteToBackground: false,
        status: "running",
        messageQueue: expect.any(Array),
        turnHistory: [],
        progress: {
          turns: 0,
          modelCalls: 1,
          toolCalls: 1,
          tokens: expect.any(Number),
          costUsd: expect.any(Number),
          latestIntent: "First I look for modules.",
          recentActivity: [
            { message: expect.stringContaining("First I look"), timestamp: expect.any(Number) },
            { message: "glob", timestamp: expect.any(Number) },
          ],
        },
        startedAt: expect.any(Number),
        activeTimeMs: 0,
        activeStartedAt: expect.any(Number),
        abort: expect.any(Function),
      });
      const intent = "First I look for modules.";
      expect(session.agents.tasks?.view("a")).toMatchObject({ toolCalls: 1, lastActivity: "glob", intent });
      expect(resultsOf(session.events, "read_agent")[0]).toMatch(
        /agent_id: a, .*status: running.* tool_calls: 1, .*intent: First I look for modules\./,
      );
      expect(resultsOf(session.events, "list_agents")[0]).toMatch(
        /^a \| explore \| running .*\| First I look for modules\. \| glob \(\d+s ago\) \| 1 \| \d+ \|/m,
      );
      expect(await submit(session, "/tasks")).toMatchObject({ text: expect.stringContaining(`1 calls, `) });
      expect(await submit(session, "/tasks")).toMatchObject({ text: expect.stringContaining(`· ${intent} · glob`) });
      done.resolve();
      await sent;
      expect(session.agents.tasks?.snapshot("a")).toMatchObject({
        status: "idle",
        messageQueue: [],
        latestResponse: "nothing",
        turnHistory: [{ number: 1, response: "nothing" }],
        idleSince: expect.any(Number),
      });
      // Whatever stops it stops it: that is the handle of the record.
      expect(await session.agents.tasks?.snapshot("a")?.abort()).toBe(true);
      expect(session.agents.tasks?.snapshot("a")).toMatchObject({
        status: "cancelled",
        completedAt: expect.any(Number),
      });
      expect(session.agents.tasks?.snapshot("b")).toBeUndefined();
    });
  });

  it("ORC-33 a wait for a background agent lasts until its answer or itself ends, it moves, or the time is over", async () => {
    const done = deferred<void>();
    const steps = [
      starts("a", "explore", background),
      starts("b", "explore"),
      says("ok"),
      of("a", stalls(done.promise, says("a turn"))),
      of("b", stalls(done.promise, says("another"))),
    ];
    const signal = new AbortController().signal;
    await onStage(steps, { agents: { wakes: false } }, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      const tasks = session.agents.tasks;
      await expect.poll(() => requests("b").length).toBe(1);
      const waits = tasks?.wait("b", { timeoutMs: 60_000, signal });
      expect(await tasks?.promote("b")).toBe(true);
      expect(await waits).toBe("promoted");
      expect(await tasks?.wait("a", { timeoutMs: 10, signal })).toBe("timeout");
      const turn = tasks?.wait("a", { timeoutMs: 60_000, signal });
      const end = tasks?.wait("b", { timeoutMs: 60_000, signal });
      done.resolve();
      expect(await Promise.all([turn, end])).toEqual(["idle", "ended"]);
      await sent;
    });
  });
});

describe("a synchronous agent", () => {
  it("ORC-38 an agent moved to the background continues: the call returns its id, the answer is read later", async () => {
    const done = deferred<void>();
    const steps = [
      starts("a", "explore"),
      says("it goes on"),
      reads("a"),
      says("a lighthouse"),
      of("a", stalls(done.promise, says("a lighthouse"))),
    ];
    await onStage(steps, {}, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => requests("a").length).toBe(1);
      expect(await submit(session, "/tasks promote a")).toMatchObject({ kind: "said" });
      await expect.poll(() => requests("main").length).toBe(2);
      expect(resultsOf(session.events, "task")[0]).toMatch(/agent_id: a\b/);
      done.resolve();
      expect(await sent).toEqual({ kind: "done", answer: "a lighthouse" });
      expect(resultsOf(session.events, "read_agent")[0]).toContain("a lighthouse");
    });
  });

  it("ORC-40 a synchronous agent ends with the answer that waits for it and with the agents it started", async () => {
    const steps = [
      starts("a", "general-purpose"),
      of("a", starts("b", "general-purpose")),
      of("b", calls(["bash", { command: "sleep 300", description: "sleep" }])),
    ];
    await onStage(steps, {}, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => story(session.events)).toContain("b tool.execution_start");
      session.abort();
      expect(await sent).toEqual({ kind: "aborted" });
      expect(session.agents.tasks?.list().map(({ id, status }) => [id, status])).toEqual([
        ["a", "cancelled"],
        ["b", "cancelled"],
      ]);
      expect(requests()).toHaveLength(3);
    });
  });

  it("ORC-48 ORC-85 SDK-19 SDK-36 a synchronous agent reports its usage, and the main agent continues after a failure", async () => {
    const usage = { inputTokens: 100, outputTokens: 20 };
    const steps = [
      starts("a", "explore"),
      starts("b", "explore"),
      says("one of two"),
      of("a", withUsage(calls(["glob", { pattern: "*" }]), usage), withUsage(says("found"), usage)),
      of("b", fails(400, { message: "no such thing" })),
    ];
    await onStage(steps, {}, async ({ session }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "one of two" });
      const who = { agentName: "explore", agentDisplayName: "Explore Agent" };
      const [first, second] = dataOf(session.events, "subagent.started");
      expect(dataOf(session.events, "subagent.completed")).toEqual([
        {
          ...who,
          toolCallId: first?.toolCallId,
          model: "alpha/large",
          durationMs: expect.any(Number),
          totalTokens: 240,
          totalToolCalls: 1,
        },
      ]);
      expect(dataOf(session.events, "subagent.completed")[0]?.durationMs).toBeGreaterThan(0);
      expect(dataOf(session.events, "subagent.failed")).toMatchObject([
        { ...who, toolCallId: second?.toolCallId, error: expect.stringContaining("no such thing") },
      ]);
      expect(resultsOf(session.events, "task")[1]).toContain("no such thing");
    });
  });

  it("ORC-85 an agent reports at a second end only what was used since the second start", async () => {
    const usage = { inputTokens: 100, outputTokens: 20 };
    const looks = withUsage(calls(["glob", { pattern: "*" }]), usage);
    const steps = [
      starts("a", "explore"),
      of("a", looks, stalls(), looks, withUsage(says("found"), usage)),
      says("ok"),
    ];
    await onStage(steps, {}, async (stage) => {
      const { session, requests } = stage;
      const sent = session.sendAndWait({ prompt: "go" }).catch(() => undefined);
      await expect.poll(() => requests("a").length).toBe(2);
      await session.close();
      await sent;
      const again = await stage.reopen();
      await again.agents.tasks?.send("a", "go on");
      await expect.poll(() => again.agents.tasks?.view("a")?.status).toBe("completed");
      await again.queue.whenIdle();
      const ends = dataOf(again.events, "subagent.completed");
      expect(ends.map(({ totalToolCalls, totalTokens }) => [totalToolCalls, totalTokens])).toEqual([
        [1, expect.any(Number)],
        [1, 240],
      ]);
    });
  });
});

describe("the list of tasks", () => {
  it("ORC-41 the list of tasks shows background commands beside agents", async () => {
    const steps = [
      calls(["bash", { command: "sleep 300", description: "sleep", mode: "async", shellId: "nap" }]),
      starts("a", "explore"),
      says("ok"),
      of("a", says("done")),
    ];
    await onStage(steps, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const said = await submit(session, "/tasks");
      expect(said).toMatchObject({ kind: "said", text: expect.stringMatching(/^a {2}explore, .* completed/) });
      expect(said).toMatchObject({ text: expect.stringMatching(/nap {2}shell, background · running .*sleep 300/) });
    });
  });
});

describe("a rate-limited provider", () => {
  it("ORC-86 concurrent agents wait as long as a rate-limited provider asks, and all complete", async () => {
    const names = ["a", "b", "c"];
    const steps = [
      calls(
        ...names.map(
          (name) => ["task", { description: name, prompt: `@${name}`, agent_type: "explore", name }] as const,
        ),
      ),
      says("all"),
      ...names.map((name) => of(name, rateLimited(50), says(`words of ${name}`))),
    ];
    await onStage(steps, {}, async ({ session, requests, heard }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "all" });
      expect(names.map((name) => requests(name).length)).toEqual([2, 2, 2]);
      expect(session.agents.tasks?.list().map(({ status }) => status)).toEqual(Array(3).fill("completed"));
      expect(heard.filter(({ type }) => type === "troupe.retry")).toHaveLength(3);
    });
  });
});
