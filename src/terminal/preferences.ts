/**
 * The user's choices for the terminal itself, in `terminal.json` of the state folder: colours, vim mode, wrapping, keys.
 * A mistake in the file is said and leaves the defaults in place; it never keeps the terminal from opening.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { nearest } from "../lib/text.ts";
import { type Action, fixedOverlayKeys, type KeyBinding, keyTable } from "./input/key-table.ts";
import { type ThemeName, themeNames } from "./screen/style.ts";

export interface Preferences {
  readonly theme: ThemeName;
  readonly vim: boolean;
  /** "words": prose is filled with blanks so that it breaks between words. "terminal": the terminal wraps it anywhere. */
  readonly wrap: "words" | "terminal";
  readonly keys: readonly KeyBinding[];
  /** Mistakes in the file, for the user. */
  readonly problems: readonly string[];
}

const defaultPreferences: Preferences = {
  theme: "default",
  vim: false,
  wrap: "words",
  keys: keyTable,
  problems: [],
};
const FILE = "terminal.json";

export async function readPreferences(home: string): Promise<Preferences> {
  const path = join(home, FILE);
  try {
    return preferencesOf(await readStored(path), path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { ...defaultPreferences, problems: [`${path} cannot be read: ${why}`] };
  }
}

/** Changes these members of the file and keeps all others. */
export async function storePreferences(
  home: string,
  changes: Partial<Pick<Preferences, "theme" | "vim">>,
): Promise<void> {
  const path = join(home, FILE);
  const value = { ...(await readStored(path)), ...changes };
  await nodeDisk.mkdir(home);
  await replaceFile(nodeDisk, path, `${JSON.stringify(value, undefined, 2)}\n`);
}

async function readStored(path: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("it is no JSON object");
  return value as Readonly<Record<string, unknown>>;
}

function preferencesOf(value: Readonly<Record<string, unknown>>, path: string): Preferences {
  const problems: string[] = [];
  const theme = themeNames.find((name) => name === value.theme);
  if (value.theme !== undefined && !theme) problems.push(`theme: use one of ${themeNames.join(", ")}`);
  if (value.vim !== undefined && typeof value.vim !== "boolean") problems.push("vim: use true or false");
  if (value.wrap !== undefined && value.wrap !== "words" && value.wrap !== "terminal") {
    problems.push("wrap: use words or terminal");
  }
  const { keys, problems: ofKeys } = boundKeys(value.keys);
  return {
    theme: theme ?? "default",
    vim: value.vim === true,
    wrap: value.wrap === "terminal" ? "terminal" : "words",
    keys,
    problems: [...problems, ...ofKeys].map((problem) => `${path}: ${problem}`),
  };
}

const KEY =
  /^(?:(?:ctrl|alt|shift)\+)*(?:[!-~]|enter|tab|escape|space|backspace|delete|insert|home|end|pageUp|pageDown|up|down|left|right|f\d{1,2})$/;

/** The table of keys with those of the user in place of its own. With any mistake, its own keys stay. */
export function boundKeys(given: unknown): {
  readonly keys: readonly KeyBinding[];
  readonly problems: readonly string[];
} {
  if (given === undefined) return { keys: keyTable, problems: [] };
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return { keys: keyTable, problems: ['keys: use an object such as {"agents": ["ctrl+t"]}'] };
  }
  const problems: string[] = [];
  const wanted = new Map<Action, readonly string[]>();
  for (const [name, value] of Object.entries(given)) {
    const action = keyTable.find((binding) => binding.action === name)?.action;
    const keys: unknown[] = Array.isArray(value) ? value : [value];
    const wrong = keys.find((key) => typeof key !== "string" || !key.split(" ").every((part) => KEY.test(part)));
    if (!action) problems.push(`keys: there is no action "${name}"${hintFor(name)}`);
    else if (wrong !== undefined)
      problems.push(`keys.${name}: ${JSON.stringify(wrong)} is not a key such as ctrl+t or "ctrl+x k"`);
    else wanted.set(action, keys as string[]);
  }
  const keys = keyTable.map((binding) => ({ ...binding, keys: wanted.get(binding.action) ?? binding.keys }));
  problems.push(
    ...conflicts(keys.filter(({ where }) => where === undefined)),
    ...conflicts(
      keys.filter(({ where }) => where === "replay"),
      fixedOverlayKeys,
    ),
  );
  return problems.length > 0 ? { keys: keyTable, problems } : { keys, problems };
}

function hintFor(name: string): string {
  const close = nearest(
    name,
    keyTable.map(({ action }) => action),
  );
  return close === undefined ? "" : `; did you mean "${close}"?`;
}

/** A key of two actions, and a key that is also the first of two. `fixed` keys belong to the overlay itself. */
function conflicts(table: readonly KeyBinding[], fixed: readonly string[] = []): string[] {
  const owners = new Map<string, Action | "the overlay">(fixed.map((key) => [key, "the overlay"]));
  const found: string[] = [];
  for (const { action, keys } of table) {
    for (const key of keys) {
      const owner = owners.get(key);
      if (owner !== undefined && owner !== action) found.push(`keys: ${key} is bound to ${owner} and to ${action}`);
      owners.set(key, action);
    }
  }
  for (const [key, action] of owners) {
    const [first = "", second] = key.split(" ");
    const owner = second === undefined ? undefined : owners.get(first);
    if (owner !== undefined) found.push(`keys: ${first} is bound to ${owner} and begins ${key} of ${action}`);
  }
  return found;
}
