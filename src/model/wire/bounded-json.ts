import { isDeeperThan, type Json, parseJson } from "../../lib/json.ts";
import { limits } from "./limits.ts";

type Parsed = ReturnType<typeof parseJson>;

/** Parses untrusted JSON. Never throws, and refuses nesting deep enough to break recursive consumers. */
export function parseBounded(text: string): Parsed {
  if (text.length > 2 * limits.jsonDepth && isDeeperThan(text, limits.jsonDepth)) {
    return { ok: false, error: `nested more than ${limits.jsonDepth} levels deep` };
  }
  return parseJson(text);
}

/** Returns JSON text with unpaired surrogates replaced: several providers refuse requests that contain one. */
export function encodeJson(value: Json | object): string {
  const text = JSON.stringify(value);
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(?:ud[0-9a-f]{3}|.)/g, (sequence) => (sequence.length === 6 ? "\\ufffd" : sequence));
}
