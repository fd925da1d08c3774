/** Parses one settings file. Errors name file, line and field. */
import { isObject, type Json } from "../../lib/json.ts";
import { clip, nearest } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { boundedNotices, type CatalogNotice, MAX_NOTICES } from "../catalog.ts";
import { JsoncError, type JsonNode, lineOf, parseJsonc } from "./settings-jsonc.ts";
import { knownNames, type Settings, SettingsSchema } from "./settings-schema.ts";

export interface ParsedSettings {
  readonly settings: Settings;
  /** Returns the file and line of the value at this path. */
  positionOf(...path: readonly (string | number)[]): { readonly name: string; readonly line: number };
  /** One notice for every unknown name. */
  readonly unknown: readonly CatalogNotice[];
}

type Step = string | number;

export function parseSettings(path: string, text: string): ParsedSettings {
  const root = parseSettingsText(path, text);
  const positionOf = (...steps: readonly Step[]) => ({ name: path, line: lineOf(root, steps) });
  const first = SettingsSchema.safeParse(root.value);
  if (first.success) return { settings: first.data, positionOf, unknown: [] };

  const unknown: (readonly Step[])[] = [];
  for (const issue of first.error.issues) {
    const steps = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
    if (issue.code !== "unrecognized_keys") throw wrong(root, path, steps, issue.message);
    unknown.push(...issue.keys.map((key) => [...steps, key]));
  }
  const known = knownNames();
  // Guessing is expensive, so only for notices that are shown.
  const notices = unknown.map((steps, index) =>
    unknownName(steps, `${path}:${lineOf(root, steps)}`, index < MAX_NOTICES ? known : []),
  );
  const settings = SettingsSchema.parse(without(root.value, unknown));
  return { settings, positionOf, unknown: boundedNotices(notices, path) };
}

/** Parses the text. An empty file is an error: a full disk or a crash may have erased its denials. */
export function parseSettingsText(path: string, text: string): JsonNode {
  if (text.trim() === "") {
    throw new TroupeError("configuration", `${path} is empty.`, {
      hint: "Restore its content from a backup. If there is none, write {} into it or delete it.",
    });
  }
  try {
    const root = parseJsonc(text);
    if (isObject(root.value)) return root;
    throw new JsoncError(root.line, "must contain an object: { … }");
  } catch (error) {
    if (!(error instanceof JsoncError)) throw error;
    throw new TroupeError("configuration", `${path}:${error.line}: the file ${error.message}.`);
  }
}

function wrong(root: JsonNode, path: string, steps: readonly Step[], message: string): TroupeError {
  const field = clip(steps.join("."), 200);
  return new TroupeError("configuration", `${path}:${lineOf(root, steps)}: ${field}: ${message}`);
}

function unknownName(steps: readonly Step[], positionOf: string, known: readonly string[]): CatalogNotice {
  const name = String(steps.at(-1));
  const guess = name.length > 60 ? undefined : nearest(name, known);
  const hint = guess === undefined ? "" : ` Did you mean "${guess}"?`;
  return {
    kind: "settings-unknown",
    message: `${positionOf}: there is no setting ${JSON.stringify(clip(steps.join("."), 200))}.${hint}`,
  };
}

/** Returns a copy of the value without the values at these paths. */
function without(value: Json, paths: readonly (readonly Step[])[]): Json {
  if (!isObject(value)) return value;
  const kept = new Map(Object.entries(value as Record<string, Json>));
  const inner = new Map<string, (readonly Step[])[]>();
  for (const [step, ...rest] of paths) {
    const name = String(step);
    if (rest.length === 0) kept.delete(name);
    else if (!inner.get(name)?.push(rest)) inner.set(name, [rest]);
  }
  for (const [name, rests] of inner) kept.set(name, without(kept.get(name) ?? null, rests));
  return Object.fromEntries(kept);
}
