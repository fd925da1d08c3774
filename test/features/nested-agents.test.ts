/** Agents that agents start: messages between them, and the states that an agent can have. */
import { describe, expect, it } from "vitest";
import { calls, fails, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";
import { of, onStage, resultsOf, starts, texts, toolNames } from "./stage.ts";

const background = { mode: "background" };

describe("an agent that starts another", () => {
  const write = calls(["write_agent", { agent_id: "inner", message: "and how tall?" }]);
  const read = calls(["read_agent", { agent_id: "inner", wait: true, timeout: 600, since_turn: 1 }]);
  const inner = (...more: Parameters<typeof of>[1][]) => of("inner", says("a lighthouse"), ...more);

  it("ORC-90 an agent that starts another can read, message, list and stop it, and gets an answer", async () => {
    const steps = [
      starts("outer", "general-purpose"),
      says("ok"),
      of("outer", starts("inner", "explore", background), write, read, calls(["list_agents", {}]), says("outer done")),
      inner(says("twelve metres")),
    ];
    await onStage(steps, {}, async ({ session, first, requests }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "ok" });
      expect(toolNames(first("outer"))).toEqual(
        expect.arrayContaining(["read_agent", "write_agent", "list_agents", "stop_agent"]),
      );
      // The first answer comes in the call itself, as an agent cannot start others in the background.
      expect(texts(requests("outer")[1] ?? first("outer")).at(-1)).toBe(
        'a lighthouse\n\nAgent "inner" is idle: write_agent sends it more work.',
      );
      expect(resultsOf(session.events, "write_agent")).toEqual(['Message delivered to agent "inner".']);
      const message = '<agent_message from="outer">\nand how tall?\n</agent_message>';
      expect(texts(requests("inner")[1] ?? first("inner"))).toEqual(["@inner look around", "a lighthouse", message]);
      expect(resultsOf(session.events, "read_agent")[0]).toContain("twelve metres");
      expect(resultsOf(session.events, "list_agents")[0]).toMatch(/inner.*idle/);
      expect(checkTasks(session.events, { settled: true })).toEqual([]);
    });
  });

  it("ORC-90 an agent cannot write to one that it started where agents do not take messages", async () => {
    const steps = [
      starts("outer", "general-purpose"),
      says("ok"),
      of("outer", starts("inner", "explore", background), write, says("outer done")),
      inner(),
    ];
    await onStage(steps, { environment: { MULTI_TURN_AGENTS: "off" } }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "write_agent")[0]).toMatch(/NOT delivered to agent "inner"/);
      expect(session.agents.tasks?.view("inner")).toMatchObject({ status: "completed" });
    });
  });

  it("ORC-32 idle agents complete with the agent that started them, each with one end event", async () => {
    const steps = [
      starts("outer", "general-purpose"),
      says("ok"),
      of("outer", starts("inner", "explore", background), says("outer done")),
      inner(),
    ];
    await onStage(steps, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(transitions(session.events, "inner")).toEqual(["running idle", "idle completed"]);
      expect(transitions(session.events, "outer")).toEqual(["running completed"]);
      const ends = session.events.flatMap(({ type, agentId }) => (type === "subagent.completed" ? [agentId] : []));
      expect(ends).toEqual(["inner", "outer"]);
      expect(checkTasks(session.events, { settled: true })).toEqual([]);
    });
  });

  it("nested agents stay resumable at every depth when the session is closed while a call waits for them", async () => {
    const steps = [starts("outer", "general-purpose"), of("outer", starts("inner", "explore")), of("inner", stalls())];
    await onStage(steps, {}, async ({ session, requests }) => {
      const ended = session.sendAndWait({ prompt: "go" }).catch(() => undefined);
      await expect.poll(() => requests("inner").length).toBe(1);
      await session.close();
      await ended;
      expect(session.agents.tasks?.view("inner")).toMatchObject({ status: "idle", reason: "interrupted" });
      expect(session.agents.tasks?.view("outer")).toMatchObject({ status: "idle", reason: "interrupted" });
    });
  });

  it("ORC-32 idle agents of every depth end with the agent at the top", async () => {
    const steps = [
      starts("outer", "general-purpose"),
      says("ok"),
      of("outer", starts("middle", "general-purpose", background), says("outer done")),
      of("middle", starts("inner", "explore", background), says("middle done")),
      inner(),
    ];
    await onStage(steps, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const ends = session.events.flatMap(({ type, agentId }) => (type === "subagent.completed" ? [agentId] : []));
      expect(ends).toEqual(["inner", "middle", "outer"]);
      expect(checkTasks(session.events, { settled: true })).toEqual([]);
    });
  });

  it("ORC-32 an agent that received a message ends when it has answered and none waits for it", async () => {
    const steps = [
      starts("outer", "general-purpose"),
      says("ok"),
      of("outer", starts("inner", "explore", background), write, says("outer done")),
      inner(says("twelve metres")),
    ];
    await onStage(steps, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      await expect.poll(() => session.agents.tasks?.view("inner")?.status).toBe("completed");
      expect((await session.agents.tasks?.report("inner"))?.answers.at(-1)?.response).toBe("twelve metres");
    });
  });
});

describe("the states of an agent", () => {
  it("ORC-32 agents take every expected transition between states", async () => {
    const seen = new Set<string>();
    const collect = ({ events }: { readonly events: readonly SessionEvent[] }) => {
      for (const { taskId } of dataOf(events, "troupe.task_created"))
        for (const step of transitions(events, taskId)) seen.add(step);
    };
    const ends = [
      ...[starts("fine", "general-purpose"), starts("bad", "explore"), says("ok")],
      of("fine", starts("child", "explore", background), says("done")),
      of("child", says("found")),
      of("bad", fails(400, { message: "no" })),
    ];
    await onStage(ends, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      collect(session);
    });
    const rests = [
      ...[starts("rests", "explore", background), says("started")],
      ...[calls(["write_agent", { agent_id: "rests", message: "more" }]), says("asked")],
      ...[calls(["stop_agent", { agent_id: "rests" }]), says("stopped")],
      of("rests", says("one"), says("two")),
    ];
    await onStage(rests, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      collect(session);
    });
    await onStage([starts("long", "explore"), of("long", stalls())], {}, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => requests("long").length).toBe(1);
      session.abort();
      await sent;
      collect(session);
    });
    expect([...seen].toSorted()).toEqual([
      ...["idle cancelled", "idle completed", "idle running"],
      ...["running cancelled", "running completed", "running failed", "running idle"],
    ]);
  });
});

/** The transitions of a task as the seed counts them: an agent that waits for a slot is running. */
function transitions(events: readonly SessionEvent[], taskId: string): string[] {
  const shown = (status: string | null): string | null => (status === "queued" ? "running" : status);
  return dataOf(events, "troupe.task_state").flatMap((data) => {
    const [from, to] = [shown(data.from), shown(data.to)];
    return data.taskId === taskId && from !== to ? [`${from} ${to}`] : [];
  });
}
