/** Limits for data of a server. Values are walked without recursion, because deep nesting is a possible attack. */
import { prototypeKeys } from "../../lib/json.ts";
import { quoted } from "../../lib/quoting.ts";
import { clip, sanitise } from "../../lib/text.ts";

export interface JsonLimits {
  readonly depth: number;
  readonly nodes: number;
  /** Of all keys and texts together. */
  readonly characters: number;
}

/** Returns why the value is rejected, worded to follow its name; undefined when it is valid. */
export function jsonProblem(root: unknown, limits: JsonLimits): string | undefined {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }];
  let nodes = 0;
  let characters = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    if (++nodes > limits.nodes) return `has more than ${limits.nodes} parts`;
    if (typeof value === "string") characters += value.length;
    if (typeof value === "object" && value !== null) {
      if (depth > limits.depth) return `is nested deeper than ${limits.depth} levels`;
      for (const [key, inner] of Object.entries(value)) {
        if (!Array.isArray(value)) {
          characters += key.length;
          if (prototypeKeys.has(key)) return `has a member called ${key}`;
          if (key.length <= limits.characters && sanitise(key) !== key) return "has a member with hidden characters";
        }
        open.push({ value: inner, depth: depth + 1 });
        if (open.length > limits.nodes) return `has more than ${limits.nodes} parts`;
      }
    }
    if (characters > limits.characters) return `is larger than ${Math.round(limits.characters / 1024)} KiB`;
  }
  return undefined;
}

/** Returns text of a server quoted and cut at the limit; an empty text for any other value. */
export function cleanText(text: unknown, maxCharacters: number): string {
  if (typeof text !== "string") return "";
  return clip(quoted(text.slice(0, maxCharacters * 4)), maxCharacters);
}

/** Returns the text on one line, for notices and errors. */
export function cleanLine(text: unknown, maxCharacters = 300): string {
  return clip(
    cleanText(text, maxCharacters * 2)
      .replace(/\s+/g, " ")
      .trim(),
    maxCharacters,
  );
}
