/** Runs the hooks of a point one after another. Emits one start event and exactly one end event for each. */
import { defined } from "../lib/defined.ts";
import type { EffectGuard } from "../lib/effect-guard.ts";
import type { Json } from "../lib/json.ts";
import type { ResolveName } from "../lib/node/checked-dial.ts";
import type { PrepareProgram } from "../lib/node/program.ts";
import type { Stamp } from "../lib/stamp.ts";
import { clip } from "../lib/text.ts";
import type { Emit } from "../protocol/event.ts";
import { allowedOutput } from "./allowed-output.ts";
import { boundedForEvent } from "./bounded-json.ts";
import { payloadFor } from "./dialect.ts";
import { type HookDefinition, scopes } from "./hooks.ts";
import { type Merged, mergeRules } from "./merge.ts";
import { type HookInput, type HookOutput, type HookPoint, isAuthorising, subjectOf } from "./points.ts";
import { type HookOutcome, runHook } from "./run-hook.ts";
import type { HookVariables } from "./url-rules.ts";

export interface Hooks {
  /**
   * Returns whether any hook would run at this point. With a subject (the name of a tool, an agent, …), only matching
   * hooks count.
   */
  has(point: HookPoint, subject?: string): boolean;
  /**
   * Resolves with the merged output of all hooks. Rejects only with the reason of an abort, or when an event cannot be
   * stored.
   */
  fire<P extends HookPoint>(point: P, input: HookInput<P>, options?: FireOptions): Promise<Merged<P>>;
  /** Prompts to submit as the user at the start of a new interactive session, in order. */
  readonly startPrompts: readonly string[];
}

interface FireOptions {
  readonly signal?: AbortSignal;
  /** Emits the events for another agent, such as a subagent (default: the session). */
  readonly emit?: Emit;
}

export interface HooksOptions {
  readonly definitions: readonly HookDefinition[];
  /** Returns the current hooks of connected programs. They change as clients of the session connect and disconnect. */
  readonly live?: () => readonly HookDefinition[];
  readonly emit: Emit;
  readonly stamp: Stamp;
  readonly prepare: PrepareProgram;
  /** The environment of this process. */
  readonly environment: HookVariables;
  readonly projectRoot: string;
  /** Called once for each distinct message, for the user. */
  readonly warn?: (message: string) => void;
  readonly resolveName?: ResolveName;
  /** Set where another process can take the session over. */
  readonly effectGuard?: EffectGuard;
}

export function createHooks(options: HooksOptions): Hooks {
  const byPoint = new Map<HookPoint, HookDefinition[]>();
  const startPrompts: string[] = [];
  for (const definition of inOrder(options.definitions)) {
    if (definition.run.type === "prompt") startPrompts.push(definition.run.prompt);
    else byPoint.set(definition.point, [...(byPoint.get(definition.point) ?? []), definition]);
  }
  const warn = oncePerMessage(options.warn ?? (() => undefined));
  const allOf = (point: HookPoint): HookDefinition[] => [
    ...(byPoint.get(point) ?? []),
    ...(options.live?.().filter((definition) => definition.point === point) ?? []),
  ];
  const meant = (point: HookPoint, subject: string | undefined): HookDefinition[] =>
    allOf(point).filter(({ matcher }) => matcher === undefined || subject === undefined || matcher.matches(subject));
  return {
    startPrompts,
    has: (point, subject) => meant(point, subject).length > 0,
    async fire(point, input, { signal, emit = options.emit } = {}) {
      signal?.throwIfAborted();
      const definitions = meant(point, subjectOf(point, input));
      return runAll({ point, input, definitions, invoke });

      async function invoke(definition: HookDefinition, told: HookInput<typeof point>) {
        return invokeOne({ definition: { ...definition, point }, input: told, signal, emit, options, warn });
      }
    },
  };
}

function inOrder(definitions: readonly HookDefinition[]): HookDefinition[] {
  const rank = ({ source }: HookDefinition): number => scopes.indexOf(source.scope);
  return [...definitions].sort((one, other) => rank(one) - rank(other));
}

/** Passes each distinct message on once. Every failure is still recorded as an event. */
function oncePerMessage(warn: (message: string) => void): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message) || told.size >= MAX_WARNINGS) return;
    told.add(message);
    warn(message);
  };
}

const MAX_WARNINGS = 100;

interface Round<P extends HookPoint> {
  readonly point: P;
  readonly input: HookInput<P>;
  readonly definitions: readonly HookDefinition[];
  invoke(definition: HookDefinition, input: HookInput<P>): Promise<HookOutput<P> | undefined>;
}

/**
 * Runs the hooks in order. Second pass: a hook that judged other arguments than the final ones judges again, and may only
 * deny or demand a question.
 */
async function runAll<P extends HookPoint>({ point, input, definitions, invoke }: Round<P>): Promise<Merged<P>> {
  const { merge, next, recheck } = mergeRules[point];
  const judged: { readonly definition: HookDefinition; readonly subject: unknown }[] = [];
  let merged = {} as Merged<P>;
  for (const definition of definitions) {
    const said = await invoke(definition, next?.(input, merged) ?? input);
    if (said !== undefined) merged = merge(merged, allowedOutput({ ...definition, point }, said));
    judged.push({ definition, subject: recheck?.subject(merged) });
  }
  if (recheck === undefined) return merged;
  for (const { definition, subject } of judged) {
    if (subject === recheck.subject(merged)) continue;
    const said = await invoke(definition, next?.(input, merged) ?? input);
    if (said !== undefined) merged = merge(merged, recheck.objection(said));
  }
  return merged;
}

interface Invocation<P extends HookPoint> {
  readonly definition: HookDefinition & { readonly point: P };
  readonly input: HookInput<P>;
  readonly signal: AbortSignal | undefined;
  readonly emit: Emit;
  readonly options: HooksOptions;
  warn(message: string): void;
}

async function invokeOne<P extends HookPoint>(invocation: Invocation<P>): Promise<HookOutput<P> | undefined> {
  const { definition, input, signal, emit, options, warn } = invocation;
  const { point, dialect, source } = definition;
  const { stamp, prepare, environment, projectRoot, resolveName, effectGuard } = options;
  const payload = payloadFor(point, input, { dialect, now: stamp.now() });
  const run = { hookInvocationId: stamp.id("hook"), hookType: point };
  await emit("hook.start", { ...run, input: boundedForEvent(payload) });
  const outcome = await runHook(
    { definition, payload, signal },
    {
      prepare,
      environment,
      projectRoot,
      ...defined({ resolveName, effectGuard }),
      onProgress: (progress) => void emit("hook.progress", progress).catch(() => undefined),
      onWarning: warn,
    },
  );
  const output = outputOf(definition, outcome);
  const problem = problemIn(outcome);
  await emit("hook.end", {
    ...run,
    ...(output !== undefined && { output: boundedForEvent(output as Json) }),
    success: problem === undefined,
    ...(problem !== undefined && { error: { message: clip(problem, 4096), source: source.file } }),
  });
  if (outcome.kind === "aborted") throw signal?.reason;
  if (problem !== undefined) warn(`${definition.pinned.shown}: ${clip(problem, 500)}`);
  return output;
}

function problemIn(outcome: HookOutcome<HookPoint>): string | undefined {
  switch (outcome.kind) {
    case "warned":
    case "failed":
      return outcome.message;
    case "aborted":
      return "it was aborted";
    default:
      return undefined;
  }
}

/** Returns the output of a hook, or the refusal that its failure implies. */
function outputOf<P extends HookPoint>(
  { point, onFailure, pinned }: HookDefinition & { readonly point: P },
  outcome: HookOutcome<P>,
): HookOutput<P> | undefined {
  if (outcome.kind === "refused") return refusal(point, outcome.reason);
  if (outcome.kind === "failed" && onFailure === "closed")
    return refusal(
      point,
      `the hook "${clip(pinned.shown, 200)}" failed, and its decision is required: ${clip(outcome.message, 4096)}`,
    );
  return outcome.kind === "answered" || outcome.kind === "warned" ? outcome.output : undefined;
}

function refusal<P extends HookPoint>(point: P, reason: string): HookOutput<P> {
  const words = reason === "" ? undefined : reason;
  const said: HookOutput<"preToolUse" | "permissionRequest" | "agentStop"> =
    point === "preToolUse"
      ? { permissionDecision: "deny", ...(words && { permissionDecisionReason: words }) }
      : isAuthorising(point)
        ? { behavior: "deny", ...(words && { message: words }) }
        : { decision: "block", ...(words && { reason: words }) };
  return said as HookOutput<P>;
}
