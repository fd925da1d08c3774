import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { EventData } from "../protocol/event.ts";
import type { NewTask, TaskLimits } from "./ports.ts";
import { type TaskFold, within } from "./task-fold.ts";
import type { TaskRecord, TaskSpec } from "./task-record.ts";
import { isFinal } from "./task-state.ts";

const MAX_PROMPT_CHARACTERS = 1_000_000;
const MAX_TASKS = 10_000;

type Shares = NonNullable<TaskSpec["limits"]>;

export interface StartConditions {
  readonly fold: TaskFold;
  readonly limits: TaskLimits;
  readonly isFull: boolean;
  /** The number of starts that are not in the fold yet. */
  readonly starting: number;
  readonly isParentStopping: boolean;
}

/**
 * Returns the event data of a new task, limited to its parent's tools and limits. Throws a `TroupeError` if it must not
 * start.
 */
export function checkStart(
  task: NewTask,
  conditions: StartConditions,
): Omit<EventData<"troupe.task_created">, "taskId"> {
  const { fold, limits, isFull } = conditions;
  const { name: _, tools, limits: asked, ...rest } = task;
  const parent = parentOf(task, fold);
  const depth = (parent?.spec.depth ?? 0) + 1;
  requireRoom(task, conditions);
  if (parent && (conditions.isParentStopping || isFinal(parent.status))) {
    throw new TroupeError("interrupted", `Agent "${parent.id}" is at its end and can start no others.`);
  }
  if (depth > limits.maxDepth) {
    const message = `Recursion limit: agents can be nested ${limits.maxDepth} levels deep; this one would be at level ${depth}.`;
    throw new TroupeError("limit", message, { hint: "Do this part of the work yourself." });
  }
  if (isFull && limits.whenFull === "reject") {
    throw new TroupeError("limit", `The maximum number of concurrent agents (${limits.maxConcurrency}) is reached.`, {
      hint: "Wait until one has ended, or do the work yourself.",
    });
  }
  if (task.prompt.length > MAX_PROMPT_CHARACTERS) {
    throw new TroupeError("usage", "The prompt is too long.", { hint: "Put it into a file and name the file." });
  }
  const allowed = within(tools, parent?.tools ?? null);
  const shares = smaller(asked, parent?.spec.limits);
  return { ...rest, depth, tools: allowed && [...allowed], ...defined({ limits: shares }) };
}

/** Throws if the session, or the current message, has started its maximum number of agents. */
function requireRoom({ kind, parentId, factoryRunId }: NewTask, { fold, limits, starting }: StartConditions): void {
  if (fold.all().length + starting >= MAX_TASKS) {
    throw new TroupeError("limit", `This session has had ${MAX_TASKS} agents.`, { hint: "Continue in a new session." });
  }
  const { maxTotal = Number.POSITIVE_INFINITY } = limits;
  // Agents of factories have their own limit.
  const isCounted = kind === "agent" && factoryRunId === undefined && !fold.isOfFactory(parentId);
  if (!isCounted || fold.agentsOfMessage + starting < maxTotal) return;
  throw new TroupeError("limit", `The limit of ${maxTotal} agents for one message is reached.`, {
    hint: "Do the rest of the work yourself, or with agents that exist already.",
  });
}

function parentOf({ parentId }: NewTask, fold: TaskFold): TaskRecord | undefined {
  if (parentId === undefined) return undefined;
  const parent = fold.get(parentId);
  if (!parent) throw new TroupeError("usage", `There is no agent "${parentId}" to start others.`);
  return parent;
}

/** Returns the smaller value of each limit. */
function smaller(own: Shares | undefined, parents: Shares | undefined): Shares | undefined {
  if (!own || !parents) return own ?? parents;
  const shares: Shares = { ...parents, ...own };
  for (const key of ["turns", "tokens", "costUsd", "durationMs"] as const) {
    const [a, b] = [own[key], parents[key]];
    if (a !== undefined && b !== undefined) shares[key] = Math.min(a, b);
  }
  return shares;
}
