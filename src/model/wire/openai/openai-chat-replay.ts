/**
 * Data that a chat server sends with a reply and requires back unchanged with the next request: `extra_content` of
 * Gemini (signatures), `reasoning_details` of OpenRouter, `thinking` parts of Mistral. It is stored as JSON in
 * `Reasoning.opaque`. It is sent back only to its own provider, because other servers refuse unknown fields.
 */
import { isObject } from "../../../lib/json.ts";
import type { AssistantMessage, Reasoning } from "../../../protocol/message.ts";
import { parseBounded } from "../bounded-json.ts";
import { limits } from "../limits.ts";
import { protocolError } from "../wire-error.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Marks reasoning whose `opaque` is the JSON of a `ChatReplay`. */
const CHAT = "chat";

export interface ChatReplay {
  /** Id of the provider. */
  readonly provider: string;
  /** The field of the reasoning text; `thinking` is part of the content. */
  readonly field?: string;
  /** `reasoning_opaque` of the reply. */
  readonly opaque?: string;
  /** `reasoning_details` of the reply. */
  readonly details?: readonly Fields[];
  /** `extra_content` of the message. */
  readonly extra?: Fields;
  /** `extra_content` of calls, by call id. */
  readonly calls?: Readonly<Record<string, Fields>>;
}

/** Returns the reasoning to store with a reply. */
export function replayReasoning(text: string, replay: ChatReplay): Reasoning {
  return { ...(text && { text }), opaque: JSON.stringify(replay), wireField: CHAT };
}

/** Returns the stored data if the message came from this provider over the chat wire. */
export function replayFor(provider: string, { reasoning }: AssistantMessage): ChatReplay | undefined {
  if (reasoning?.wireField !== CHAT || !reasoning.opaque) return undefined;
  const parsed = parseBounded(reasoning.opaque);
  if (!parsed.ok || !isObject(parsed.value) || parsed.value.provider !== provider) return undefined;
  const { field, opaque, details, extra, calls }: Fields = parsed.value;
  return {
    provider,
    ...(typeof field === "string" && { field }),
    ...(typeof opaque === "string" && { opaque }),
    ...(Array.isArray(details) && { details: details.filter(isObject) }),
    ...(isObject(extra) && { extra }),
    ...(isObject(calls) && { calls: objectsIn(calls) }),
  };
}

function objectsIn(members: Fields): Record<string, Fields> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([key, value]): [string, Fields][] => (isObject(value) ? [[key, value]] : [])),
  );
}

/** Assembles the `reasoning_details` of one reply from its chunks. */
export class ReasoningDetails {
  readonly #provider: string;
  readonly #details: Fields[] = [];
  #isGiven = false;
  #characters = 0;

  constructor(provider: string) {
    this.#provider = provider;
  }

  /**
   * The details to send back, or `undefined` if the reply had none. An empty list is sent back too, because DeepSeek
   * requires it. Omits thoughts without a signature: Anthropic and Google refuse them.
   */
  get all(): readonly Fields[] | undefined {
    return this.#isGiven ? this.#details.filter((detail) => !lacksSignature(detail)) : undefined;
  }

  /** Adds a chunk and returns its readable text. Throws when the details exceed their limits. */
  add(chunk: unknown, extent: "part" | "whole"): string {
    if (!Array.isArray(chunk)) return "";
    this.#isGiven = true;
    let text = "";
    for (const detail of chunk.filter(isObject)) {
      this.#characters += JSON.stringify(detail).length;
      if (this.#characters > limits.reasoningCharacters || this.#details.length >= limits.blocks) {
        throw protocolError(this.#provider, "the reasoning of the reply is too long");
      }
      const last = this.#details.at(-1);
      if (extent === "part" && last && continues(last, detail)) {
        this.#details[this.#details.length - 1] = mergeFields(last, detail);
      } else {
        this.#details.push(detail);
      }
      text += textField(detail.text) + textField(detail.summary);
    }
    return text;
  }
}

const lacksSignature = ({ type, format, signature }: Fields): boolean =>
  type === "reasoning.text" && !signature && /^(?:anthropic-claude|google-gemini)-/.test(textField(format));

/** True if `next` continues `last`. Text comes in pieces, encrypted data as a whole. */
function continues(last: Fields, next: Fields): boolean {
  const isText = next.type === "reasoning.text" || next.type === "reasoning.summary";
  const isSameId = last.id === next.id || last.id == null || next.id == null;
  return isText && last.type === next.type && last.index === next.index && isSameId;
}

function mergeFields(last: Fields, next: Fields): Fields {
  const given = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== null && value !== undefined));
  return {
    ...last,
    ...given,
    ...(typeof next.text === "string" && { text: textField(last.text) + next.text }),
    ...(typeof next.summary === "string" && { summary: textField(last.summary) + next.summary }),
  };
}

const textField = (value: unknown): string => (typeof value === "string" ? value : "");

/** Merges `extra_content`. Members of vendors are merged one level deep. */
export function mergedExtra(known: Fields | undefined, more: Fields): Fields {
  if (known === undefined) return more;
  const merged: Record<string, unknown> = { ...known };
  for (const [vendor, value] of Object.entries(more)) {
    const before = merged[vendor];
    merged[vendor] = isObject(before) && isObject(value) ? { ...before, ...value } : value;
  }
  return merged;
}

/**
 * Gemini 3 refuses calls without a signature, including those of other models after a switch. Google documents this
 * value for calls that never had one.
 */
export const unsignedCall: Fields = { google: { thought_signature: "skip_thought_signature_validator" } };
