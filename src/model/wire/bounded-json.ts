import { isDeeperThan, type Json, parseJson } from "../../lib/json.ts";
import { limits } from "./limits.ts";

type Parsed = ReturnType<typeof parseJson>;

/** `JSON.parse` for text from outside: never throws, and refuses nesting that would break whoever walks the value. */
export function parseBounded(text: string): Parsed {
  if (text.length > 2 * limits.jsonDepth && isDeeperThan(text, limits.jsonDepth)) {
    return { ok: false, error: `nested more than ${limits.jsonDepth} levels deep` };
  }
  return parseJson(text);
}

/** JSON text of a value, with unpaired surrogates replaced: several providers refuse a request that holds one. */
export function encodeJson(value: Json | object): string {
  const text = JSON.stringify(value);
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(?:ud[0-9a-f]{3}|.)/g, (sequence) => (sequence.length === 6 ? "\\ufffd" : sequence));
}
