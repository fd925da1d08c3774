/**
 * The order in which a script is played. Calls of agents with their own steps take those, independent of scheduling.
 * All other calls take the remaining steps in order. An extra call and an unused step are both failures.
 */
import { clip, plural } from "../../lib/text.ts";
import { ModelError } from "../model-error.ts";
import type { ModelRequest } from "../provider.ts";
import type { Moves } from "./faux-step.ts";

/** A reply, or a function that computes one from the request. */
export type PlainStep<Play = Moves> = Play | ((request: ModelRequest, signal: AbortSignal) => Play | Promise<Play>);
export type Step<Play = Moves> = PlainStep<Play> | AgentSteps<Play> | Fallback<Play>;

export interface AgentSteps<Play = Moves> {
  readonly type: "for-agent";
  readonly agent: string | ((request: ModelRequest) => boolean);
  readonly steps: readonly PlainStep<Play>[];
}

export interface Fallback<Play = Moves> {
  readonly type: "otherwise";
  readonly step: PlainStep<Play>;
}

/**
 * Steps for one agent, matched by its task id or name, ignoring case. If neither matches (as for the main agent), a
 * name matches as a whole word in the system prompt; of several, the first in the prompt wins. Pass a predicate if that
 * is not enough.
 */
export function forAgent<Play = Moves>(
  agent: string | ((request: ModelRequest) => boolean),
  ...steps: readonly PlainStep<Play>[]
): AgentSteps<Play> {
  return { type: "for-agent", agent, steps };
}

/** The step for every call without another step. It can be used any number of times, or not at all. */
export function otherwise<Play = Moves>(step: PlainStep<Play>): Fallback<Play> {
  return { type: "otherwise", step };
}

export interface Plan<Play> {
  /**
   * Returns the step for this call. Throws a `ModelError` if there is none: "request" for a file, otherwise "internal".
   */
  take(request: ModelRequest, signal: AbortSignal): Promise<Play>;
  /** Throws when a step was not used, or a call had no step. */
  assertSpent(): void;
}

export interface PlanOptions<Play> {
  /** The player's name for messages: "faux model". */
  readonly owner: string;
  /** The script's file. A missing step is then the file's error, not a defect. */
  readonly file?: string;
  readonly steps: readonly Step<Play>[];
  /** Assigns ids to calls without one, numbered per tool name. */
  readonly number: (play: Play, nextId: (toolName: string) => string) => Play;
}

interface Group<Play> {
  readonly label: string;
  readonly agent?: string | ((request: ModelRequest) => boolean);
  readonly steps: readonly PlainStep<Play>[];
  taken: number;
}

export function makePlan<Play>(options: PlanOptions<Play>): Plan<Play> {
  const { owner } = options;
  const nextId = callNumbers();
  const unexpected: string[] = [];
  let callCount = 0;

  // Ids follow the position in the script, not the order of play, so that parallel agents get the same ids each run.
  const number = (play: Play): Play => options.number(play, nextId);
  const groups = groupSteps(options.steps, (step) => (isFunction(step) ? step : number(step)));
  const fallback = options.steps.find((step) => isFallback(step))?.step;

  return {
    async take(request, signal) {
      callCount += 1;
      const group = groupFor(request, groups);
      const step = group.steps[group.taken] ?? fallback;
      group.taken += 1;
      if (step === undefined) {
        const message =
          options.file === undefined
            ? `${owner}: unexpected call ${callCount} (the script has ${sizeOf(group)}); ${lastUserText(request)}`
            : `the faux script ${options.file} has only ${sizeOf(group)}; call ${group.taken} was not expected`;
        unexpected.push(message);
        throw new ModelError(message, {
          kind: options.file === undefined ? "internal" : "request",
          provider: "faux",
          hint: 'Add a step for it or an "otherwise", or find out why the model was called again.',
        });
      }
      return number(isFunction(step) ? await step(request, signal) : step);
    },
    assertSpent() {
      const unused = groups
        .map((group) => ({ label: group.label, count: Math.max(0, group.steps.length - group.taken) }))
        .filter(({ count }) => count > 0)
        .map(
          ({ label, count }) => `${owner}: ${plural(count, "step")}${label} unused after ${plural(callCount, "call")}`,
        );
      if (unexpected.length + unused.length > 0) throw new Error([...unexpected, ...unused].join("\n"));
    },
  };
}

/** Returns a generator of ids: `call_view_1`, `call_view_2`, `call_grep_1` … */
export function callNumbers(): (toolName: string) => string {
  const counts = new Map<string, number>();
  return (toolName) => {
    const next = (counts.get(toolName) ?? 0) + 1;
    counts.set(toolName, next);
    return `call_${toolName}_${next}`;
  };
}

/** Assigns the next ids to the calls without one. */
export function numberCalls(moves: Moves, nextId: (toolName: string) => string): Moves {
  return moves.map((move) =>
    move.type === "call" && move.call.toolCallId === ""
      ? { ...move, call: { ...move.call, toolCallId: nextId(move.call.name) } }
      : move,
  );
}

function groupSteps<Play>(
  steps: readonly Step<Play>[],
  prepare: (step: PlainStep<Play>) => PlainStep<Play>,
): readonly [Group<Play>, ...Group<Play>[]] {
  const shared: PlainStep<Play>[] = [];
  const keyed: Group<Play>[] = [];
  for (const step of steps) {
    if (isAgentSteps(step)) {
      const label = typeof step.agent === "string" ? ` for agent "${step.agent}"` : " for one agent";
      keyed.push({ label, agent: step.agent, steps: step.steps.map(prepare), taken: 0 });
    } else if (!isFallback(step)) shared.push(prepare(step));
  }
  return [{ label: "", steps: shared, taken: 0 }, ...keyed];
}

/**
 * Finds the group for a request. Predicates come first, then task ids, then agent names, then the system prompt. Groups
 * for the same agent are played one after another.
 */
function groupFor<Play>(request: ModelRequest, groups: readonly [Group<Play>, ...Group<Play>[]]): Group<Play> {
  const [shared, ...keyed] = groups;
  const byPredicate = keyed.filter(({ agent }) => typeof agent === "function" && agent(request));
  const candidates =
    [byPredicate, calledLike(request.agent?.id, keyed), calledLike(request.agent?.name, keyed)].find(isFilled) ??
    namedIn(request.system, keyed);
  return candidates.find((group) => group.taken < group.steps.length) ?? candidates.at(-1) ?? shared;
}

function isFilled(list: readonly unknown[]): boolean {
  return list.length > 0;
}

function calledLike<Play>(name: string | undefined, groups: readonly Group<Play>[]): readonly Group<Play>[] {
  const wanted = name?.toLowerCase();
  return groups.filter(({ agent }) => typeof agent === "string" && agent.toLowerCase() === wanted);
}

function namedIn<Play>(prompt: string, groups: readonly Group<Play>[]): readonly Group<Play>[] {
  // Ignores the list of tools: a tool may have the name of an agent.
  const system = prompt.replace(/^- Tools: .*$/m, "");
  const named = groups
    .map((group) => ({ group, position: typeof group.agent === "string" ? positionOf(group.agent, system) : -1 }))
    .filter(({ position }) => position >= 0)
    .sort((a, b) => a.position - b.position);
  return named.filter(({ group }) => group.agent === named[0]?.group.agent).map(({ group }) => group);
}

function positionOf(name: string, system: string): number {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return system.search(new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`, "i"));
}

function sizeOf<Play>(group: Group<Play>): string {
  return `${plural(group.steps.length, "step")}${group.label}`;
}

function lastUserText(request: ModelRequest): string {
  const last = request.messages.findLast((message) => message.role === "user");
  return last ? `the last user message was ${JSON.stringify(clip(last.content, 200))}` : "there was no user message";
}

function isFunction<Play>(
  step: PlainStep<Play>,
): step is (request: ModelRequest, signal: AbortSignal) => Play | Promise<Play> {
  return typeof step === "function";
}

function isAgentSteps<Play>(step: Step<Play>): step is AgentSteps<Play> {
  return hasType(step, "for-agent");
}

function isFallback<Play>(step: Step<Play>): step is Fallback<Play> {
  return hasType(step, "otherwise");
}

function hasType(step: unknown, type: string): boolean {
  return typeof step === "object" && step !== null && "type" in step && step.type === type;
}
