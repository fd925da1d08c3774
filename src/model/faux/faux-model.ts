/**
 * A model that plays a script. It is a real provider, so that nothing above it can tell the difference: tests,
 * examples and `--model faux:script.json` all run the code that runs in earnest.
 */
import { defineProvider, type ModelRequest, type Provider } from "../provider.ts";
import { makePlan, numberCalls, type Step } from "./faux-plan.ts";
import { playMoves, settledOrAborted } from "./faux-step.ts";

export interface FauxModel extends Provider {
  /** Everything the model was shown, call by call: frozen copies, taken when the call began. */
  readonly requests: readonly ModelRequest[];
  /** Throws when a step was not used, or when there was a call the script had no step for. */
  assertSpent(): void;
}

/** Plays the steps in order, one for each call. A call too many ends with an error of kind "internal". */
export function fauxModel(...steps: readonly Step[]): FauxModel {
  return fauxProvider({ steps });
}

export interface FauxProviderOptions {
  /** Tells several faux models apart; "faux" unless told. */
  readonly id?: string;
  readonly steps: readonly Step[];
  /** The file they were read from: a call too many is then an error of kind "request" that names it. */
  readonly file?: string;
}

export function fauxProvider({ id = "faux", steps, file }: FauxProviderOptions): FauxModel {
  const requests: ModelRequest[] = [];
  const plan = makePlan({ owner: `${id} model`, steps, number: numberCalls, ...(file !== undefined && { file }) });
  const provider = defineProvider({
    id,
    async *stream(request, signal) {
      const shown = frozenCopy(request);
      requests.push(shown);
      yield* playMoves(await settledOrAborted(plan.take(shown, signal), signal), signal);
    },
  });
  return { ...provider, requests, assertSpent: plan.assertSpent };
}

/** Later changes by the caller do not reach the copy, and nobody can change what was recorded. */
function frozenCopy(request: ModelRequest): ModelRequest {
  const tools = request.tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  return deepFreeze(structuredClone({ ...request, tools }));
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
