import { type Deferred, deferred } from "../../src/lib/deferred.ts";
import { type Stamp, systemStamp } from "../../src/lib/stamp.ts";
import type { Emit, EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";
import { EventLog } from "../../src/session/event-log.ts";
import type { SessionLog } from "../../src/store/store.ts";
import type { TaskNotice } from "../../src/tasks/notices.ts";
import type { AnswerEnd, AnswerPorts, NewTask, TaskLimits, TaskRunner } from "../../src/tasks/ports.ts";
import { Registry } from "../../src/tasks/registry.ts";
import type { TaskMessage, TaskRecord } from "../../src/tasks/task-record.ts";

export type Emitting = <T extends EventType>(agentId: string | undefined, type: T, data: EventData<T>) => Promise<void>;

/** `kill`: from here on nothing is written and no call returns, as after kill -9. */
export type WriteOutcome = "success" | "failure" | "kill";

/** A log in memory that keeps the contract of a real one: after a failed write nothing until `recover`. */
function memoryLog(kept: SessionEvent[], outcomeOfWrite: () => WriteOutcome = () => "success"): SessionLog {
  let isBroken = false;
  let isKilled = false;
  const check = async (): Promise<void> => {
    const next = isKilled ? "kill" : outcomeOfWrite();
    isKilled = next === "kill";
    if (isKilled) await new Promise<never>(() => undefined);
    if (!isBroken && next === "success") return;
    isBroken = true;
    throw new Error("no space left on device");
  };
  const nothing = async (): Promise<never> => {
    throw new Error("not here");
  };
  return {
    sessionId: "s",
    directory: "/memory",
    events: structuredClone(kept),
    removed: [],
    count: kept.length,
    page: async (from, to) => structuredClone(kept.slice(from, to)),
    snapshot: async () => false,
    everything: async () => structuredClone(kept),
    damage: [],
    heldBy: undefined,
    async append(event) {
      await Promise.resolve();
      await check();
      kept.push(structuredClone(event));
    },
    flush: async () => undefined,
    async repairAfterFailedWrite() {
      isBroken = false;
      await check();
    },
    writeAsset: nothing,
    readAsset: async () => undefined,
    writeFile: nothing,
    readFile: nothing,
    writeSummary: async () => undefined,
    close: async () => undefined,
  };
}

/** One turn under way, ended by the test. */
interface Scene {
  readonly task: TaskRecord;
  readonly messages: readonly TaskMessage[];
  readonly io: AnswerPorts;
  readonly end: Deferred<AnswerEnd>;
}

export interface StageOptions {
  readonly kept?: SessionEvent[];
  /** Events that the registry reads when it is opened; default: the log. */
  readonly events?: readonly SessionEvent[];
  readonly limits?: Partial<TaskLimits>;
  readonly stamp?: Stamp;
  readonly outcomeOfWrite?: () => WriteOutcome;
  /** `deaf`: turns go on when they are told to stop. */
  readonly runner?: "polite" | "deaf" | ((emit: Emitting) => TaskRunner);
  /** How the registry hears of events; for seeding mistakes. */
  readonly observe?: (registry: Registry, event: SessionEvent) => void;
}

export interface Stage {
  readonly registry: Registry;
  readonly kept: SessionEvent[];
  readonly emit: Emitting;
  readonly scenes: Map<string, Scene>;
  readonly released: string[];
  readonly troubles: unknown[];
  readonly defects: unknown[];
  readonly files: Map<string, string>;
  /** Handed out, in order. */
  readonly notices: { parentId: string | undefined; notice: TaskNotice }[];
  start(name: string, more?: Partial<NewTask>): Promise<string>;
  /** The turn that this task has under way, as soon as it has one. */
  scene(id: string): Promise<Scene>;
  answer(id: string, response?: string): Promise<void>;
  /** The main agent is told what is due, and answers. */
  hear(): Promise<number>;
  states(id: string): string[];
}

export function stage(options: StageOptions = {}): Stage {
  const { kept = [], stamp = systemStamp, runner = "polite" } = options;
  const notices: Stage["notices"] = [];
  const scenes = new Map<string, Scene>();
  const released: string[] = [];
  const troubles: unknown[] = [];
  const defects: unknown[] = [];
  const files = new Map<string, string>();
  const log = new EventLog({
    store: memoryLog(kept, options.outcomeOfWrite),
    stamp,
    fold: () => undefined,
    onListenerDefect: (error) => defects.push(error),
  });
  const emit: Emitting = (agentId, type, data) => log.emit(agentId, type, data);
  const scripted = scriptedRunner({ emit, scenes, released, isDeaf: runner === "deaf" });
  const registry = new Registry({
    events: options.events ?? log.events,
    emit: ((type, data) => emit(undefined, type, data)) as Emit,
    repair: () => log.repair(),
    discard: (matches) => log.discard(matches),
    stamp,
    runner: typeof runner === "function" ? runner(emit) : scripted,
    limits: { maxConcurrency: 32, maxDepth: 6, whenFull: "queue", ...options.limits },
    storeLarge: async (content) => {
      const file = `answer-${files.size}.txt`;
      files.set(file, content);
      return file;
    },
    readLarge: async (file) => files.get(file) ?? Promise.reject(new Error("missing")),
    onNotice: (parentId, notice) => notices.push({ parentId, notice }),
    onChange: () => undefined,
    onTrouble: (error) => troubles.push(error),
    onDefect: (error) => defects.push(error),
  });
  const { observe = (to: Registry, event: SessionEvent) => to.observe(event) } = options;
  log.subscribe((event) => observe(registry, event));

  const scene = async (id: string): Promise<Scene> => {
    await until(() => scenes.has(id), `a turn of ${id}`);
    return scenes.get(id) as Scene;
  };
  return {
    registry,
    kept,
    emit,
    scenes,
    released,
    troubles,
    defects,
    files,
    notices,
    scene,
    start: async (name, more = {}) => (await registry.create(newTask(name, more))).id,
    async answer(id, response = `answer of ${id}`) {
      (await scene(id)).end.resolve({ kind: "answered", response });
      await registry.wait(id, { timeoutMs: 60_000 });
    },
    async hear() {
      let heard = 0;
      for (const { parentId, notice } of notices.splice(0)) {
        if (parentId !== undefined || !notice.take()) continue;
        heard++;
        await emit(undefined, "system.notification", { content: notice.content, kind: notice.kind });
      }
      if (heard > 0) await emit(undefined, "assistant.message", message("I see."));
      return heard;
    },
    states: (id) =>
      kept.flatMap((event) => (event.type === "troupe.task_state" && event.data.taskId === id ? [event.data.to] : [])),
  };
}

export const message = (content: string): EventData<"assistant.message"> => ({
  messageId: "m",
  content,
  toolRequests: [],
});

export function newTask(name: string, more: Partial<NewTask> = {}): NewTask {
  return {
    name,
    toolCallId: `call-${name}`,
    kind: "agent",
    agentName: "explore",
    agentDisplayName: "Explore",
    description: `look at ${name}`,
    prompt: `Look at ${name}.`,
    mode: "background",
    multiTurn: false,
    tools: null,
    ...more,
  };
}

export async function until(isSo: () => boolean, what: string, withinMs = 4000): Promise<void> {
  const end = performance.now() + withinMs;
  for (let turns = 0; !isSo(); turns++) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, turns < 100 ? 0 : 2));
  }
}

function scriptedRunner(parts: {
  emit: Emitting;
  scenes: Map<string, Scene>;
  released: string[];
  isDeaf: boolean;
}): TaskRunner {
  const { emit, scenes, released, isDeaf } = parts;
  return {
    async answer(task, messages, io) {
      const end = deferred<AnswerEnd>();
      for (const { id, content } of messages) {
        await emit(task.id, "user.message", { content, interactionId: id });
      }
      if (!isDeaf) io.signal.addEventListener("abort", () => end.resolve({ kind: "aborted" }), { once: true });
      if (io.signal.aborted && !isDeaf) end.resolve({ kind: "aborted" });
      scenes.set(task.id, { task, messages, io, end });
      const result = await end.promise;
      scenes.delete(task.id);
      if (result.kind === "answered" && !io.signal.aborted) {
        await emit(task.id, "assistant.message", message(result.response)).catch(() => undefined); // rewritten by repair
      }
      return result;
    },
    async release(task) {
      released.push(task.id);
    },
  };
}
