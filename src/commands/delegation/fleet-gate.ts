/** Decides whether a fleet may end: no todo is left that an agent could still do. */
import { quoted } from "../../lib/quoting.ts";
import { plural } from "../../lib/text.ts";
import type { StopGate } from "../gate.ts";
import { clipLine } from "../lines.ts";

export interface FleetPorts {
  readTodos(): Promise<readonly FleetTodo[]>;
  readDependencies(): Promise<readonly TodoDependency[]>;
  /** Number of working agents. They wake the main agent when they end, so it may stop meanwhile. */
  runningAgents(): number;
}

export interface FleetTodo {
  readonly id: string;
  readonly status: string;
}

export interface TodoDependency {
  readonly todoId: string;
  readonly dependsOn: string;
}

/** Todo ids by state. */
export interface FleetState {
  readonly ready: readonly string[];
  readonly claimed: readonly string[];
  /** Pending todos that can never become ready because their dependencies form a cycle. */
  readonly knotted: readonly string[];
  readonly done: number;
}

const MAX_REMINDERS = 5;

/** Reminds once, and again only if todos were completed since. */
export function fleetGate(ports: FleetPorts): StopGate {
  let reminders = 0;
  let doneBefore = -1;
  return async () => {
    if (reminders >= MAX_REMINDERS || ports.runningAgents() > 0) return undefined;
    const state = fleetState(await ports.readTodos(), await ports.readDependencies());
    if (state.done <= doneBefore) return undefined;
    const message = judgeFleet(state);
    if (message !== undefined) {
      reminders++;
      doneBefore = state.done;
    }
    return message;
  };
}

/** Groups todos by state. A todo is ready if it is pending and all its existing dependencies are done. */
export function fleetState(todos: readonly FleetTodo[], dependencies: readonly TodoDependency[]): FleetState {
  const statuses = new Map(todos.map(({ id, status }) => [id, status]));
  const openBehind = new Map<string, string[]>();
  for (const { todoId, dependsOn } of dependencies) {
    const status = statuses.get(dependsOn);
    if (status !== undefined && status !== "done")
      openBehind.set(todoId, [...(openBehind.get(todoId) ?? []), dependsOn]);
  }
  const idsOf = (wanted: string): string[] => todos.filter(({ status }) => status === wanted).map(({ id }) => id);
  const pending = idsOf("pending");
  const ready = pending.filter((id) => !openBehind.has(id));
  // Pending todos behind a ready, claimed or blocked one can still move; the rest form a cycle.
  const explained = new Set([...ready, ...idsOf("in_progress"), ...idsOf("blocked")]);
  for (let grows = true; grows; ) {
    const next = pending.filter((id) => !explained.has(id) && openBehind.get(id)?.some((one) => explained.has(one)));
    for (const id of next) explained.add(id);
    grows = next.length > 0;
  }
  return {
    ready,
    claimed: idsOf("in_progress"),
    knotted: pending.filter((id) => !explained.has(id)),
    done: idsOf("done").length,
  };
}

/** Returns the message for the agent; undefined if no todo is left to do. */
export function judgeFleet({ ready, claimed, knotted }: FleetState): string | undefined {
  if (ready.length > 0) {
    return `${count(ready)} ready and not done: ${names(ready)}. Start agents for them now, or set those no longer needed to 'done' or 'blocked' with the reason.`;
  }
  if (claimed.length > 0) {
    return `${count(claimed)} claimed, but no agent is running: ${names(claimed)}. Check the work, set each to 'done', 'blocked' or back to 'pending', and continue.`;
  }
  if (knotted.length > 0) {
    return `${count(knotted)} waiting for each other and can never become ready: ${names(knotted)}. Remove a dependency from todo_deps, and continue.`;
  }
  return undefined;
}

const MAX_NAMED = 20;

function count(ids: readonly string[]): string {
  return `${plural(ids.length, "todo")} ${ids.length === 1 ? "is" : "are"}`;
}

function names(ids: readonly string[]): string {
  const more = ids.length - MAX_NAMED;
  const named = ids.slice(0, MAX_NAMED).map((id) => quoted(clipLine(id, 60)));
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}
