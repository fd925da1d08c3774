/**
 * Parameters that a request can do without. Servers that speak a dialect of a wire refuse some of them: a request that
 * failed because of one is sent once more without it, and later requests to the same model leave it out.
 */
import { ModelError } from "../model-error.ts";
import type { Place } from "./place.ts";

export interface OptionalParameter {
  /** The name of the parameter in the request, with dots for nested ones; also its key among the refused ones. */
  readonly name: string;
  /** Other names that errors use for it. */
  readonly aliases?: readonly string[];
  /** An error with these words is about the value that the user gave, and is not to be hidden. */
  readonly unless?: RegExp;
}

/** The refused parameters, by provider and model. Lives as long as the process. */
export class RefusedParameters {
  readonly #refused = new Map<string, ReadonlySet<string>>();

  of(place: Place, model: string): ReadonlySet<string> {
    return this.#refused.get(keyOf(place, model)) ?? none;
  }

  remember(place: Place, model: string, refused: ReadonlySet<string>): void {
    const key = keyOf(place, model);
    this.#refused.delete(key);
    this.#refused.set(key, new Set(refused));
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > MAX_MODELS && oldest !== undefined) this.#refused.delete(oldest);
  }
}

/** Errors about the schema of the user, as opposed to formats with a schema as such. */
export const aboutSchema = /invalid (?:json )?schema|(?<!json[_ ])schema/i;

const none: ReadonlySet<string> = new Set();
const MAX_MODELS = 1_000;

const keyOf = ({ id, baseUrl }: Place, model: string): string => JSON.stringify([id, baseUrl, model]);

/** Returns which of the parameters that were sent the error refuses: the first that fits. */
export function refusedParameter(
  error: unknown,
  sent: () => readonly OptionalParameter[],
): OptionalParameter | undefined {
  if (!(error instanceof ModelError) || error.kind !== "request") return undefined;
  if (error.statusCode !== 400 && error.statusCode !== 422) return undefined;
  const { message, parameter = "" } = error;
  const candidates = sent().filter(({ unless }) => !unless?.test(message));
  const named = candidates.find((one) => namesOf(one).some((name) => isPlaceOf(name, parameter)));
  if (named || !refusal.test(message)) return named;
  return candidates.find((one) => namesOf(one).some((name) => mention(name).test(message)));
}

const namesOf = ({ name, aliases = [] }: OptionalParameter): readonly string[] => [name, ...aliases];

/** `stream_options`, `body.stream_options`, `stream_options.include_usage` and `input[2].phase` are places. */
function isPlaceOf(name: string, parameter: string): boolean {
  return `.${parameter.replaceAll("[", ".").replaceAll("]", "")}.`.includes(`.${name}.`);
}

const refusal =
  /unsupported|support|unknown|unrecogni[sz]ed|unexpected|not (?:permitted|allowed|available|valid|recogni[sz]ed)|forbidden|invalid|cannot find|extra (?:inputs?|fields?)|must be verified|unavailable|deprecated/i;

/** Names such as `stream_options` are unmistakable. Names that are English words must be marked as a name. */
function mention(name: string): RegExp {
  const escaped = name.replaceAll(".", "\\.");
  if (/[._]/.test(name)) return new RegExp(`(?<!\\w)${escaped}(?!\\w)`);
  const kind = "(?:parameter|argument|field|property|name|key|option|level|value)s?";
  return new RegExp(
    `["'\`]${escaped}["'\`.]|\\b${escaped}\\.\\w|\\b${escaped} ${kind}\\b|\\b${kind}:? ["'\`]?${escaped}\\b|(?:^|\\s)${escaped}:`,
    "i",
  );
}

/** The sentence that a user reads after the request went through without the parameter. */
export function refusalWarning(error: ModelError, { name }: OptionalParameter): string {
  return `${error.provider} refused the optional parameter "${name}". The request was sent again without it, and "${name}" stays off for this model until the program ends. Its words: ${error.message}`;
}
