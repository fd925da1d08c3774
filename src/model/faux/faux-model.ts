/**
 * A model that plays a script. It is a real provider, so tests, examples and `--model faux:script.json` run the same
 * code as production.
 */
import { defined } from "../../lib/defined.ts";
import { defineProvider, type ModelRequest, type Provider } from "../provider.ts";
import { makePlan, numberCalls, type Step } from "./faux-plan.ts";
import { playMoves, settledOrAborted } from "./faux-step.ts";

export interface FauxModel extends Provider {
  /** All requests to the model, as frozen copies taken when each call started. */
  readonly requests: readonly ModelRequest[];
  /** Throws when a step was not used, or a call had no step. */
  assertSpent(): void;
}

/** Returns a model that plays the steps in order, one per call. A call without a step fails with kind "internal". */
export function fauxModel(...steps: readonly Step[]): FauxModel {
  return fauxProvider({ steps });
}

export interface FauxProviderOptions {
  /** Distinguishes several faux models (default: "faux"). */
  readonly id?: string;
  readonly steps: readonly Step[];
  /** The script's file. A call without a step then fails with kind "request" and names the file. */
  readonly file?: string;
}

export function fauxProvider({ id = "faux", steps, file }: FauxProviderOptions): FauxModel {
  const requests: ModelRequest[] = [];
  const plan = makePlan({ owner: `${id} model`, steps, number: numberCalls, ...defined({ file }) });
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

/** Returns a deep frozen copy that later changes by the caller do not affect. */
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
