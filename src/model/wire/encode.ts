/** What the encoders of all wires share. */
import { createHash } from "node:crypto";
import { isObject } from "../../lib/json.ts";
import type { AssistantMessage, Image, ToolCall } from "../../protocol/message.ts";
import type { ToolDefinition } from "../provider.ts";
import { encodeJson, parseBounded } from "./bounded-json.ts";

/**
 * Remembers what was made of an object for as long as the object lives. History is encoded once, not once per turn.
 */
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

/** A JSON object from members that are JSON already; those without a value are left out. */
export function objectText(members: Readonly<Record<string, string | undefined>>): string {
  const present = Object.entries(members).filter(([, text]) => text !== undefined);
  return `{${present.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}`;
}

/** The members whose names are not refused. */
export function without<Members extends object>(refused: ReadonlySet<string>, members: Members): Partial<Members> {
  if (refused.size === 0) return members;
  return Object.fromEntries(Object.entries(members).filter(([name]) => !refused.has(name))) as Partial<Members>;
}

/** Providers insist on an object schema, even for a tool without parameters. */
export function parametersOf({ parameters }: ToolDefinition): object {
  if ("properties" in parameters && "type" in parameters) return parameters;
  if ("type" in parameters && parameters.type !== "object") return parameters;
  return { ...parameters, type: "object", properties: "properties" in parameters ? parameters.properties : {} };
}

/**
 * The id of a call in a form that the wire takes. Ids of other providers may be too long or hold other characters; the
 * same id always becomes the same one.
 */
export function fittingId(toolCallId: string, fits: RegExp, length: number): string {
  if (fits.test(toolCallId)) return toolCallId;
  return createHash("sha256").update(toolCallId).digest("hex").slice(0, length);
}

export function dataUrl({ mimeType, data }: Pick<Image, "mimeType" | "data">): string {
  return `data:${mimeType};base64,${data}`;
}

/**
 * The pieces of a reply in order, stored as JSON in `Reasoning.opaque`. `{ "from": id }` of the provider comes first; logs
 * of earlier releases lack it.
 * - a number is a text of so many characters, `{ "text": n, "phase": … }` one that belongs to a phase,
 * - null is the next call,
 * - any other object is reasoning that goes back as it came.
 */
export type Layout = readonly (number | PhasedText | null | object)[];

interface PhasedText {
  readonly text: number;
  readonly phase: string;
}

function isPhased(piece: number | null | object): piece is PhasedText {
  return isObject(piece) && typeof piece.text === "number" && typeof piece.phase === "string";
}

/** The number of characters of a text; nothing for other pieces. */
const charactersOf = (piece: number | null | object): number | undefined =>
  typeof piece === "number" ? piece : isPhased(piece) ? piece.text : undefined;

/** The layout as it is stored. */
export function layoutText(provider: string, layout: Layout): string {
  return JSON.stringify([{ from: provider }, ...layout]);
}

export interface Pieces {
  /** Only reasoning of this wire goes back over it. */
  readonly wireField: string;
  text(text: string, phase?: string): string;
  call(call: ToolCall): string;
}

/**
 * The pieces of a reply in the order in which the model gave them. Reasoning at the end is left out: it led to a call
 * that was cut off, and providers refuse reasoning without what follows it.
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

/** Whether the message has reasoning that this provider can read: encrypted or signed, it is of no use to others. */
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
