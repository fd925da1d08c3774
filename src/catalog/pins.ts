/** Kinds of workspace items that need approval, and the digest that detects changes. */
import { createHash } from "node:crypto";
import type { Json } from "../lib/json.ts";
import type { PinnedKind } from "../lib/pinned-item.ts";
import { TroupeError } from "../protocol/errors.ts";

export const pinnedKinds = [
  "hook",
  "mcp",
  "skill",
  "plugin",
  "settings",
  "environment",
  "sidekick",
  "extension",
] as const satisfies readonly PinnedKind[];

const MAX_DEPTH = 100;

/** Returns the same digest for equal JSON values, regardless of the order of members. */
export function digestOf(value: Json): string {
  return createHash("sha256").update(canonical(value, 0)).digest("hex");
}

function canonical(value: Json, depth: number): string {
  if (depth > MAX_DEPTH) throw new TroupeError("configuration", "A definition is nested too deeply to be approved.");
  if (Array.isArray(value)) return `[${value.map((element) => canonical(element, depth + 1)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key] ?? null, depth + 1)}`);
  return `{${members.join(",")}}`;
}
