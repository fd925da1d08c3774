import { type Json, parseJson } from "../../lib/json.ts";
import { limits } from "./limits.ts";

type Parsed = ReturnType<typeof parseJson>;

/** `JSON.parse` for text from outside: never throws, and refuses nesting that would break whoever walks the value. */
export function parseBounded(text: string): Parsed {
  if (text.length > 2 * limits.jsonDepth && isTooDeep(text)) {
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

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++depth > limits.jsonDepth) return true;
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      depth--;
    }
  }
  return false;
}

/** Where the string that starts at `start` ends; the end of the text if it never does. */
function endOfString(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at;
    at = text.indexOf('"', at + 1);
  }
  return text.length;
}

const QUOTE = 34;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
