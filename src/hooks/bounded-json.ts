/**
 * Size and depth limits for JSON: output of hooks is parsed with limits, their input is stored in events with limits.
 */
import { isDeeperThan, type Json, parseJson, prototypeKeys } from "../lib/json.ts";
import { clip } from "../lib/text.ts";

const MAX_DEPTH = 64;

/** Parses a text, or returns an error. The depth is checked before any object is built. */
export function readJson(text: string): { ok: true; value: Json } | { ok: false; error: string } {
  if (isDeeperThan(text, MAX_DEPTH)) return { ok: false, error: `it is nested more than ${MAX_DEPTH} deep` };
  const parsed = parseJson(text);
  if (!parsed.ok) return { ok: false, error: "it is not JSON" };
  const forbidden = forbiddenKey(parsed.value);
  return forbidden === undefined ? parsed : { ok: false, error: `the name ${forbidden} is not allowed in it` };
}

/** Returns the first key that would reach a prototype, at any depth. */
export function forbiddenKey(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const found = prototypeKeys.has(key) ? key : forbiddenKey(inner);
    if (found !== undefined) return found;
  }
  return undefined;
}

const MAX_STORED_BYTES = 8 * 1024;

/** Returns the value with long strings clipped and long lists cut until it fits into an event. */
export function boundedForEvent(value: Json): Json {
  if (measure(value) <= MAX_STORED_BYTES) return value;
  for (let characters = 2_048, items = 64; characters >= 16; characters /= 2, items = Math.max(1, items / 2)) {
    const cut = shrink(value, { characters, items, depth: 8 });
    if (measure(cut) <= MAX_STORED_BYTES) return cut;
  }
  return { truncated: true };
}

const measure = (value: Json): number => Buffer.byteLength(JSON.stringify(value));

interface Room {
  readonly characters: number;
  readonly items: number;
  readonly depth: number;
}

function shrink(value: Json, room: Room): Json {
  if (typeof value === "string") return clip(value, room.characters);
  if (typeof value !== "object" || value === null) return value;
  if (room.depth === 0) return "…";
  const inner = { ...room, depth: room.depth - 1 };
  if (Array.isArray(value)) {
    const kept = value.slice(0, room.items).map((item) => shrink(item, inner));
    return kept.length < value.length ? [...kept, "…"] : kept;
  }
  const entries = Object.entries(value);
  const kept = entries.slice(0, Math.max(8, room.items)).map(([key, item]) => [clip(key, 128), shrink(item, inner)]);
  return Object.fromEntries(kept.length < entries.length ? [...kept, ["…", entries.length - kept.length]] : kept);
}
