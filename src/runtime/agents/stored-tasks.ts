/**
 * Reads and stops the agents of a session that is not open here, from its log and without a model. To resume an agent,
 * resume the whole session: `resumeSession`.
 */

import { defined } from "../../lib/defined.ts";
import { type Stamp, systemStamp } from "../../lib/stamp.ts";
import { requireFree } from "../../protocol/errors.ts";
import { EventLog } from "../../session/event-log.ts";
import type { SessionLog, Store } from "../../store/store.ts";
import type { TaskRunner } from "../../tasks/ports.ts";
import { Registry } from "../../tasks/registry.ts";
import { TaskFold } from "../../tasks/task-fold.ts";
import { isIdleOrEnded } from "../../tasks/task-state.ts";
import { taskViewOf, wholeAnswer } from "../../tasks/task-view.ts";
import type { TaskReason, TaskStatus, TaskView } from "../../tools/agents/task-port.ts";

export interface StoredTask extends TaskView {
  /** Depth below the main agent: 1 was started by it. */
  readonly depth: number;
  readonly createdAt: number;
  readonly prompt: string;
}

export interface StoredTasks {
  readonly sessionId: string;
  /** The session's own folder. */
  readonly directory: string;
  /** The process that currently holds the session. */
  readonly heldBy: SessionLog["heldBy"];
  /** Parents before their children, otherwise in order of creation. */
  readonly tasks: readonly StoredTask[];
}

export interface StoredReport {
  readonly task: StoredTask;
  readonly turns: readonly { number: number; message: string; response: string; reason: TaskReason }[];
  readonly error?: string;
}

/** Reads tasks from the log, without a model and without changes. */
export async function readTasks(store: Store, sessionId: string, stamp: Stamp = systemStamp): Promise<StoredTasks> {
  const log = await store.open(sessionId);
  try {
    return { sessionId, directory: log.directory, heldBy: log.heldBy, tasks: inTreeOrder(tasksOf(log, stamp)) };
  } finally {
    await log.close();
  }
}

/** Returns all answers of one agent; undefined if the session has no such agent. */
export async function readTask(store: Store, sessionId: string, taskId: string): Promise<StoredReport | undefined> {
  const log = await store.open(sessionId);
  try {
    const record = new TaskFold(log.events).get(taskId);
    const task = tasksOf(log, systemStamp).find(({ id }) => id === taskId);
    if (!record || !task) return undefined;
    const readLarge = async (file: string) => (await log.readFile(file)) ?? "(the file with this answer is gone)";
    const turns = record.answers.map(async (turn) => ({
      ...(await wholeAnswer(turn, readLarge)),
      reason: turn.reason,
    }));
    return {
      task,
      turns: await Promise.all(turns),
      ...defined({ error: record.error }),
    };
  } finally {
    await log.close();
  }
}

/** Ends these agents and all below them permanently. Returns the ids of those that were ended. */
export async function stopTasks(
  store: Store,
  sessionId: string,
  wanted: readonly string[] | "all",
): Promise<readonly string[]> {
  const log = await store.open(sessionId);
  try {
    requireFree(log, HELD_ADVICE);
    const registry = await registryOf(log);
    const open = (): string[] => registry.list({ includeEnded: false }).map(({ id }) => id);
    const before = open();
    if (wanted === "all") await registry.cancelAll();
    else for (const id of wanted) await registry.cancel(id);
    const after = new Set(open());
    await registry.close();
    return before.filter((id) => !after.has(id));
  } finally {
    await log.close();
  }
}

/** Advice for a session whose process alone can stop its agents. */
const HELD_ADVICE = "Stop its agents there, or end that process first.";

function tasksOf(log: SessionLog, stamp: Stamp): StoredTask[] {
  const fold = new TaskFold(log.events);
  const depths = new Map<string, number>();
  return fold.all().map((record) => {
    const depth = record.parentId === undefined ? 1 : (depths.get(record.parentId) ?? 0) + 1;
    depths.set(record.id, depth);
    const now = stamp.now();
    const view = taskViewOf(record, { fold, running: undefined, viewer: undefined, now, waitingFor: undefined });
    const { createdAt, spec } = record;
    return { ...view, ...stateNow(view, log), depth, createdAt, prompt: spec.prompt };
  });
}

/** A task of a process that is gone was interrupted, even if the log does not say so yet. */
function stateNow({ status, reason }: TaskView, log: SessionLog): { status: TaskStatus; reason?: TaskReason } {
  if (!isIdleOrEnded(status) && !log.heldBy) return { status: "idle", reason: "interrupted" };
  return { status, ...defined({ reason }) };
}

function inTreeOrder(tasks: readonly StoredTask[]): StoredTask[] {
  const known = new Set(tasks.map(({ id }) => id));
  const children = new Map<string | undefined, StoredTask[]>();
  for (const task of tasks) {
    const parent = task.parentId !== undefined && known.has(task.parentId) ? task.parentId : undefined;
    const siblings = children.get(parent);
    if (siblings) siblings.push(task);
    else children.set(parent, [task]);
  }
  const below = (id: string | undefined): StoredTask[] =>
    (children.get(id) ?? []).flatMap((task) => [task, ...below(task.id)]);
  return below(undefined);
}

async function registryOf(log: SessionLog): Promise<Registry> {
  const events = new EventLog({
    store: log,
    stamp: systemStamp,
    fold: () => undefined,
    onListenerDefect: (error) => process.emitWarning(String(error), "TroupeListenerDefect"),
  });
  const nobody: TaskRunner = { answer: async () => ({ kind: "aborted" }) };
  const registry = new Registry({
    events: log.events,
    emit: (type, data) => events.emit(undefined, type, data),
    repair: () => events.repair(),
    discard: (matches) => events.discard(matches),
    stamp: systemStamp,
    limits: { maxDepth: 0, maxConcurrency: 1, whenFull: "reject" },
    runner: nobody,
    storeLarge: (content) => log.writeFile("agent-answer.txt", content),
    readLarge: async () => "",
    // The main agent is notified when its session is resumed.
    onNotice: () => undefined,
    onChange: () => undefined,
  });
  events.subscribe((event) => {
    if (!event.ephemeral) registry.observe(event);
  });
  await registry.restore();
  return registry;
}
