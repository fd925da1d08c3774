/** Functions shared by the encoders of all wires. */
import { createHash } from "node:crypto";
import { isObject } from "../../lib/json.ts";
import type { AssistantMessage, Image, ToolCall } from "../../protocol/message.ts";
import type { ToolDefinition } from "../provider.ts";
import { encodeJson, parseBounded } from "./bounded-json.ts";

/** Memoizes a function by object for as long as the object lives. So history is encoded once, not once per turn. */
export function remember<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, Value>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const value = make(key);
    made.set(key, value);
    return value;
  };
}

/** Returns a JSON object from members that are already JSON. Omits members without a value. */
export function objectText(members: Readonly<Record<string, string | undefined>>): string {
  const present = Object.entries(members).filter(([, text]) => text !== undefined);
  return `{${present.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`;
}

/** Returns the members whose names are not refused. */
export function without<Members extends object>(refused: ReadonlySet<string>, members: Members): Partial<Members> {
  if (refused.size === 0) return members;
  return Object.fromEntries(Object.entries(members).filter(([name]) => !refused.has(name))) as Partial<Members>;
}

/** Returns an object schema, which providers require even for a tool without parameters. */
export function parametersOf({ parameters }: ToolDefinition): object {
  if ("properties" in parameters && "type" in parameters) return parameters;
  if ("type" in parameters && parameters.type !== "object") return parameters;
  return { ...parameters, type: "object", properties: "properties" in parameters ? parameters.properties : {} };
}

/**
 * Returns a call id that the wire accepts. Ids of other providers may be too long or have other characters. The result
 * is stable.
 */
export function fittingId(toolCallId: string, fits: RegExp, length: number): string {
  if (fits.test(toolCallId)) return toolCallId;
  return createHash("sha256").update(toolCallId).digest("hex").slice(0, length);
}

export function dataUrl({ mimeType, data }: Pick<Image, "mimeType" | "data">): string {
  return `data:${mimeType};base64,${data}`;
}

/**
 * The pieces of a reply in order, stored as JSON in `Reasoning.opaque`. `{ "from": id }` of the provider comes first;
 * logs of earlier releases lack it.
 * - A number is a text of this many characters. `{ "text": n, "phase": … }` is one with a phase.
 * - `null` is the next call.
 * - Any other object is reasoning that is sent back unchanged.
 */
export type Layout = readonly (number | PhasedText | null | object)[];

interface PhasedText {
  readonly text: number;
  readonly phase: string;
}

function isPhased(piece: number | null | object): piece is PhasedText {
  return isObject(piece) && typeof piece.text === "number" && typeof piece.phase === "string";
}

/** Returns the length of a text, or `undefined` for other pieces. */
const charactersOf = (piece: number | null | object): number | undefined =>
  typeof piece === "number" ? piece : isPhased(piece) ? piece.text : undefined;

/** Returns the layout in its stored form. */
export function layoutText(provider: string, layout: Layout): string {
  return JSON.stringify([{ from: provider }, ...layout]);
}

export interface Pieces {
  /** Only reasoning with this wire field is sent back over the wire. */
  readonly wireField: string;
  text(text: string, phase?: string): string;
  call(call: ToolCall): string;
}

/**
 * Returns the pieces of a reply in the model's order. Drops reasoning at the end: it led to a call that was cut off,
 * and providers refuse reasoning without a successor.
 */
export function arrange(message: AssistantMessage, pieces: Pieces, provider: string): string[] {
  const { content, calls } = message;
  const layout = layoutOf(message, pieces.wireField, provider);
  const textLength = layout.reduce<number>((sum, piece) => sum + (charactersOf(piece) ?? 0), 0);
  const known = textLength === content.length;
  const texts: string[] = [];
  let at = 0;
  let nextCall = 0;
  let complete = 0;
  const addText = (end: number, phase?: string): void => {
    const text = content.slice(at, end);
    at = end;
    if (text.trim() !== "") complete = texts.push(pieces.text(text, phase));
  };
  const addCall = (): void => {
    const call = calls[nextCall++];
    if (call) complete = texts.push(pieces.call(call));
  };
  for (const piece of layout) {
    const characters = charactersOf(piece);
    if (characters !== undefined) {
      addText(known ? at + characters : content.length, isPhased(piece) ? piece.phase : undefined);
    } else if (piece === null) addCall();
    else texts.push(encodeJson(piece));
  }
  addText(content.length);
  while (nextCall < calls.length) addCall();
  return texts.slice(0, complete);
}

/** True if the message has reasoning from this provider. It is encrypted or signed, so others cannot use it. */
export function hasOwnReasoning(message: AssistantMessage, wireField: string, provider: string): boolean {
  return layoutOf(message, wireField, provider).length > 0;
}

function layoutOf({ reasoning }: AssistantMessage, wireField: string, provider: string): Layout {
  if (reasoning?.wireField !== wireField || !reasoning.opaque) return [];
  const parsed = parseBounded(reasoning.opaque);
  if (!parsed.ok || !Array.isArray(parsed.value)) return [];
  const [first]: readonly unknown[] = parsed.value;
  const from = isObject(first) && typeof first.from === "string" ? first.from : undefined;
  if (from !== undefined && from !== provider) return [];
  const pieces = from === undefined ? parsed.value : parsed.value.slice(1);
  return pieces.filter((piece) => piece === null || typeof piece === "number" || isObject(piece)) as Layout;
}
