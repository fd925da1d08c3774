/**
 * Parameters that a request does not need. Some servers refuse some of them. A request that failed because of one is
 * sent again without it, and later requests to the same model omit it.
 */
import { ModelError } from "../model-error.ts";
import type { Endpoint } from "./endpoint.ts";

export interface OptionalParameter {
  /** The parameter's name in the request, with dots for nested ones. Also its key among the refused ones. */
  readonly name: string;
  /** Other names for it in errors. */
  readonly aliases?: readonly string[];
  /** Errors that match are about the user's value and must not be hidden. */
  readonly unless?: RegExp;
}

/** The refused parameters by provider and model, for the life of the process. */
export class RefusedParameters {
  readonly #refused = new Map<string, ReadonlySet<string>>();

  of(endpoint: Endpoint, model: string): ReadonlySet<string> {
    return this.#refused.get(keyOf(endpoint, model)) ?? none;
  }

  remember(endpoint: Endpoint, model: string, refused: ReadonlySet<string>): void {
    const key = keyOf(endpoint, model);
    this.#refused.delete(key);
    this.#refused.set(key, new Set(refused));
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > MAX_MODELS && oldest !== undefined) this.#refused.delete(oldest);
  }
}

/** Matches errors about the user's schema, as opposed to schema formats as such. */
export const aboutSchema = /invalid (?:json )?schema|(?<!json[_ ])schema/i;

const none: ReadonlySet<string> = new Set();
const MAX_MODELS = 1_000;

const keyOf = ({ id, baseUrl }: Endpoint, model: string): string => JSON.stringify([id, baseUrl, model]);

/** Returns the first of the sent parameters that the error refuses. */
export function refusedParameter(
  error: unknown,
  sent: () => readonly OptionalParameter[],
): OptionalParameter | undefined {
  if (!(error instanceof ModelError) || error.kind !== "request") return undefined;
  if (error.statusCode !== 400 && error.statusCode !== 422) return undefined;
  const { message, parameter = "" } = error;
  const candidates = sent().filter(({ unless }) => !unless?.test(message));
  const named = candidates.find((one) => namesOf(one).some((name) => namesParameter(name, parameter)));
  if (named || !refusal.test(message)) return named;
  return candidates.find((one) => namesOf(one).some((name) => mention(name).test(message)));
}

const namesOf = ({ name, aliases = [] }: OptionalParameter): readonly string[] => [name, ...aliases];

/**
 * True if an error's path names the parameter: `stream_options`, `body.stream_options`, `stream_options.include_usage`,
 * `input[2].phase`.
 */
function namesParameter(name: string, parameter: string): boolean {
  return `.${parameter.replaceAll("[", ".").replaceAll("]", "")}.`.includes(`.${name}.`);
}

const refusal =
  /unsupported|support|unknown|unrecogni[sz]ed|unexpected|not (?:permitted|allowed|available|valid|recogni[sz]ed)|forbidden|invalid|cannot find|extra (?:inputs?|fields?)|must be verified|unavailable|deprecated/i;

/** Names such as `stream_options` are unambiguous. Names that are English words must be marked as a name. */
function mention(name: string): RegExp {
  const escaped = name.replaceAll(".", "\\.");
  if (/[._]/.test(name)) return new RegExp(`(?<!\\w)${escaped}(?!\\w)`);
  const kind = "(?:parameter|argument|field|property|name|key|option|level|value)s?";
  return new RegExp(
    `["'\`]${escaped}["'\`.]|\\b${escaped}\\.\\w|\\b${escaped} ${kind}\\b|\\b${kind}:? ["'\`]?${escaped}\\b|(?:^|\\s)${escaped}:`,
    "i",
  );
}

/** Returns the user's notice after the request succeeded without the parameter. */
export function refusalWarning(error: ModelError, { name }: OptionalParameter): string {
  return `${error.provider} refused the optional parameter "${name}". The request was sent again without it, and "${name}" stays off for this model until the program ends. Its message: ${error.message}`;
}
