/**
 * Soak test of the task registry. A main agent starts, reads, messages, promotes and stops hundreds of agents at random.
 * Turns end, are stopped and are compacted. Writes to the log fail now and then, and the process is killed between any two
 * events. The seed decides everything except the timing.
 */
import { describe, expect, it } from "vitest";
import type { EventData, SessionEvent } from "../../src/protocol/event.ts";
import type { AnswerEnd, TaskRunner } from "../../src/tasks/ports.ts";
import type { TaskView } from "../../src/tools/agents/task-port.ts";
import { checkTasks } from "../support/task-checker.ts";
import { type Emitting, message, newTask, type Stage, stage, until, type WriteOutcome } from "./stage.ts";

const isSlow = process.env.TROUPE_SLOW !== undefined;
const tasks = isSlow ? 500 : 150;
const maxConcurrency = 8;

describe("agents under random kills, failing writes and a random parent", () => {
  it.each(isSlow ? [1, 2, 3, 4, 5, 6, 7, 8] : [1, 2])(
    "agents under random kills and write failures end once or are idle, and are reported once (seed %i)",
    async (seed) => {
      const random = mulberry(seed);
      const log: SessionEvent[] = [];
      let processes = 0;
      for (; count(log, "troupe.task_created") < tasks; processes++)
        await runProcess({ log, random, processNumber: processes, isLast: false });
      await runProcess({ log, random, processNumber: processes, isLast: true });

      expect(checkTasks(log, { settled: true, maxConcurrency })).toEqual([]);
      expect(processes).toBeGreaterThan(5);
      const created = new Set(
        log.flatMap((event) => (event.type === "troupe.task_created" ? [event.data.taskId] : [])),
      );
      expect(created.size).toBeGreaterThanOrEqual(tasks);
      const seen = new Set(log.map(({ type }) => type));
      for (const type of [
        "system.notification",
        "session.compaction_complete",
        "abort",
        "troupe.task_message",
        "troupe.task_promoted",
        "troupe.task_removed",
      ])
        expect(seen).toContain(type);
      const ends = log.flatMap((event) => (event.type === "troupe.task_state" ? [event.data.to] : []));
      for (const end of ["completed", "failed", "cancelled", "idle"]) expect(ends).toContain(end);
    },
    isSlow ? 120_000 : 20_000,
  );
});

interface ProcessRun {
  readonly log: SessionEvent[];
  readonly random: () => number;
  readonly processNumber: number;
  /** In the last run nothing fails, and the session becomes idle. */
  readonly isLast: boolean;
}

async function runProcess({ log, random, processNumber, isLast }: ProcessRun): Promise<void> {
  let eventsLeft = isLast ? Number.POSITIVE_INFINITY : 20 + Math.floor(random() * 400);
  let isKilled = false;
  const outcomeOfWrite = (): WriteOutcome => {
    if (eventsLeft-- <= 0) {
      isKilled = true;
      return "kill";
    }
    return !isLast && random() < 0.004 ? "failure" : "success";
  };
  const made = stage({
    kept: log,
    limits: { maxConcurrency },
    outcomeOfWrite,
    runner: (emit) => randomRunner(emit, random, () => made),
  });
  const main = new MainAgent(made, random, processNumber);
  const act = async (): Promise<void> => {
    await made.registry.restore();
    await closeOpenCalls(made);
    await written(made.emit(undefined, "session.resume", { resumeTime: "", eventCount: log.length }));
    for (let step = 0; !isKilled && (isLast ? step < 20 : true); step++) {
      await main.act();
      await pause(random() < 0.5 ? 0 : 1);
    }
    if (!isLast) return;
    await main.coverEveryEvent();
    await main.settle();
  };
  // A killed process writes nothing more: its remaining code hangs at its next event.
  await Promise.race([act(), until(() => isKilled, "the kill", 60_000)]);
}

/** Closes calls that were cut off, as a session does. */
async function closeOpenCalls({ kept: log, emit }: Stage): Promise<void> {
  const open = new Map<string, SessionEvent & { type: "tool.execution_start" }>();
  for (const event of log) {
    if (event.type === "tool.execution_start") open.set(event.data.toolCallId, event);
    if (event.type === "tool.execution_complete") open.delete(event.data.toolCallId);
  }
  for (const { agentId, data } of open.values()) {
    const error = { message: "interrupted", code: "interrupted" };
    await written(emit(agentId, "tool.execution_complete", { toolCallId: data.toolCallId, success: false, error }));
  }
}

class MainAgent {
  readonly #stage: Stage;
  readonly #random: () => number;
  readonly #processNumber: number;
  #calls = 0;

  constructor(made: Stage, random: () => number, processNumber: number) {
    this.#stage = made;
    this.#random = random;
    this.#processNumber = processNumber;
  }

  async act(): Promise<void> {
    const { registry } = this.#stage;
    const dice = this.#random();
    if (dice < 0.45) await this.#start();
    else if (dice < 0.6) await this.#deliverNotices();
    else if (dice < 0.72) await registry.send(this.#randomTask(), "and then?");
    else if (dice < 0.82) void this.#read(this.#randomTask());
    else if (dice < 0.87) void registry.promote(this.#randomTask("sync"));
    else if (dice < 0.92) void registry.cancel(this.#randomTask());
    else if (dice < 0.95) void registry.remove(this.#randomTask());
    else if (dice < 0.955) await this.#stopTurn();
    else if (dice < 0.97) await this.#compact();
    else await registry.waitForAll(2);
  }

  /** Does everything that a short run may have skipped by chance. */
  async coverEveryEvent(): Promise<void> {
    const { registry, kept: log } = this.#stage;
    const has = (type: string): boolean => log.some((event) => event.type === type);
    for (let tries = 0; !has("troupe.task_promoted") && tries < 200; tries++) {
      await this.#start("sync");
      await registry.promote(this.#randomTask("sync"));
    }
    for (let tries = 0; !has("troupe.task_removed") && tries < 200; tries++) await registry.remove(this.#randomTask());
    if (!has("abort")) await this.#stopTurn();
    if (!has("session.compaction_complete")) await this.#compact();
  }

  /** Stops the turn as a user does: awaited agents end, background agents do not. */
  async #stopTurn(): Promise<void> {
    const { registry, emit } = this.#stage;
    await written(emit(undefined, "abort", { reason: "user_initiated" }));
    for (const { id, mode, parentId } of registry.list()) {
      if (mode === "sync" && parentId === undefined) void registry.cancel(id, { notice: "waits" });
    }
  }

  /** Replaces the conversation of the main agent, with its notices, by a summary. */
  async #compact(): Promise<void> {
    const { emit } = this.#stage;
    await written(emit(undefined, "session.compaction_start", {}));
    await pause(Math.floor(this.#random() * 3));
    await written(emit(undefined, "session.compaction_complete", { success: true, summaryContent: "so far" }));
  }

  /** Waits for all agents, and delivers all notices, to agents too. */
  async settle(): Promise<void> {
    const { registry } = this.#stage;
    for (;;) {
      expect(await registry.waitForAll(60_000)).toEqual([]);
      await this.#deliverNotices();
      await pause(2);
      const unread = registry.list().filter(({ id, status }) => status === "idle" && registry.notices(id).length > 0);
      if (unread.length === 0 && registry.notices(undefined).length === 0) break;
      for (const { id } of unread) await registry.send(id, "listen");
    }
    await pause(5);
  }

  async #start(wanted?: "sync"): Promise<void> {
    const mode = wanted ?? (this.#random() < 0.3 ? "sync" : "background");
    const toolCallId = this.#call();
    const { registry, emit } = this.#stage;
    await written(emit(undefined, "tool.execution_start", { toolCallId, toolName: "task" }));
    const name = `worker ${Math.floor(this.#random() * 40)}`;
    const multiTurn = this.#random() < 0.4;
    const made = await registry.create(newTask(name, { toolCallId, mode, multiTurn })).catch(() => undefined);
    const answer = async (): Promise<void> => {
      if (made && mode === "sync") await registry.wait(made.id, { timeoutMs: 20, reader: { toolCallId } });
      await this.#end(toolCallId);
    };
    if (mode === "sync") void answer();
    else await answer();
  }

  async #deliverNotices(): Promise<void> {
    const { emit, notices } = this.#stage;
    const due = notices.splice(0).filter(({ parentId }) => parentId === undefined);
    for (const { notice } of due) {
      if (!notice.take()) continue;
      await written(emit(undefined, "system.notification", { content: notice.content, kind: notice.kind }));
    }
    await written(emit(undefined, "assistant.message", message("go on")));
  }

  async #read(id: string): Promise<void> {
    const toolCallId = this.#call();
    const { registry, emit } = this.#stage;
    await written(emit(undefined, "tool.execution_start", { toolCallId, toolName: "read_agent" }));
    await registry
      .wait(id, { timeoutMs: Math.floor(this.#random() * 6), reader: { toolCallId } })
      .catch(() => undefined);
    await this.#end(toolCallId);
  }

  async #end(toolCallId: string): Promise<void> {
    const isCutOff = this.#random() < 0.1;
    const data: EventData<"tool.execution_complete"> = isCutOff
      ? { toolCallId, success: false, error: { message: "interrupted", code: "interrupted" } }
      : { toolCallId, success: true };
    await written(this.#stage.emit(undefined, "tool.execution_complete", data));
  }

  #call(): string {
    return `main-${this.#processNumber}-${this.#calls++}`;
  }

  #randomTask(mode?: "sync"): string {
    const isMeant = (task: TaskView): boolean =>
      mode === undefined || (task.mode === mode && task.status === "running" && task.parentId === undefined);
    const everyone = this.#stage.registry.list().filter(isMeant);
    return everyone[Math.floor(this.#random() * everyone.length)]?.id ?? "nobody";
  }
}

function randomRunner(emit: Emitting, random: () => number, on: () => Stage): TaskRunner {
  return {
    async answer(task, messages, io): Promise<AnswerEnd> {
      const { registry } = on();
      for (const { id, content } of messages)
        await written(emit(task.id, "user.message", { content, interactionId: id }));
      for (const notice of registry.notices(task.id)) {
        if (notice.take())
          await written(emit(task.id, "system.notification", { content: notice.content, kind: notice.kind }));
      }
      for (let steps = Math.floor(random() * 4); steps > 0 && !io.signal.aborted; steps--) {
        await pause(Math.floor(random() * 3));
        if (io.signal.aborted) break;
        await written(emit(task.id, "assistant.message", message("working")));
        if (random() < 0.15 && task.spec.depth < 3) await delegate(task.id, io.signal);
        for (const { id, content } of io.signal.aborted ? [] : registry.takeMessages(task.id)) {
          await written(emit(task.id, "user.message", { content, interactionId: id }));
        }
      }
      if (io.signal.aborted) return { kind: "aborted" };
      await written(emit(task.id, "assistant.message", message("done")));
      const dice = random();
      if (dice < 0.7) return { kind: "answered", response: dice < 0.05 ? "long ".repeat(5000) : "done" };
      if (dice < 0.8) return { kind: "empty" };
      if (dice < 0.9) return { kind: "limit", limit: "tokens", message: "no tokens left", response: "half" };
      return { kind: "failed", error: "the model broke off" };
    },
  };

  async function delegate(parentId: string, signal: AbortSignal): Promise<void> {
    const { registry } = on();
    const toolCallId = `call-${random()}`;
    await written(emit(parentId, "tool.execution_start", { toolCallId, toolName: "task" }));
    const more = { parentId, toolCallId, mode: "sync", multiTurn: random() < 0.3 } as const;
    const made = await registry.create(newTask("helper", more)).catch(() => undefined);
    const reader = { agentId: parentId, toolCallId };
    if (made) await registry.wait(made.id, { timeoutMs: 60_000, signal, reader }).catch(() => undefined);
    const error = { message: "interrupted", code: "interrupted" };
    const end = signal.aborted ? { toolCallId, success: false, error } : { toolCallId, success: true };
    await written(emit(parentId, "tool.execution_complete", end));
  }
}

/** Ignores a failed write: the next recovery writes the event. */
const written = (emitted: Promise<void>): Promise<void> => emitted.catch(() => undefined);

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    if (milliseconds === 0) setImmediate(resolve);
    else setTimeout(resolve, milliseconds);
  });

const count = (events: readonly SessionEvent[], wanted: string): number =>
  events.filter(({ type }) => type === wanted).length;

/** A small generator of repeatable numbers from 0 to 1. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
