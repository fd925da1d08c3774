/** Reads and checks the manifest of a plugin. */
import { join } from "node:path";
import { isObject, parseJson } from "../../lib/json.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { sanitise } from "../../lib/text.ts";

export interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly description?: string;
  readonly skills?: readonly string[];
  readonly agents?: readonly string[];
  readonly commands?: readonly string[];
  readonly hooks?: ManifestPart;
  readonly mcpServers?: ManifestPart;
}

/** Paths of files, or the content itself. */
export type ManifestPart =
  | { readonly kind: "files"; readonly paths: readonly string[] }
  | { readonly kind: "inline"; readonly value: Readonly<Record<string, unknown>> };

export type ManifestRead =
  | { readonly ok: true; readonly path: string; readonly manifest: Manifest }
  | { readonly ok: false; readonly path: string; readonly problem: string };

/** Possible paths of a manifest, in order. */
const MANIFEST_PATHS = [
  "plugin.json",
  ".github/plugin.json",
  ".claude-plugin/plugin.json",
  ".plugin/plugin.json",
] as const;

const MAX_MANIFEST_BYTES = 256 * 1024;
const MAX_PATHS = 50;
const MAX_DEPTH = 32;
const MAX_VERSION_CHARACTERS = 64;
const MAX_DESCRIPTION_CHARACTERS = 1024;
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;
const REFUSED_KEYS = new Set(["__proto__", "constructor", "prototype"]);

/** Returns undefined if there is no manifest; a folder in its place counts as none. `root` must be a real path. */
export function readManifest(root: string): ManifestRead | undefined {
  for (const path of MANIFEST_PATHS) {
    const file = readSmallFile(join(root, path), { maxBytes: MAX_MANIFEST_BYTES, below: root });
    if (file.kind === "missing") continue;
    if (file.kind === "refused") return { ok: false, path, problem: `it ${file.reason}.` };
    const manifest = parseManifest(file.text);
    return typeof manifest === "string" ? { ok: false, path, problem: manifest } : { ok: true, path, manifest };
  }
  return undefined;
}

/** Returns the manifest, or a description of the problem. */
export function parseManifest(text: string): Manifest | string {
  const json = parseJson(text.replace(/^\ufeff/, ""));
  if (!json.ok) return `it is not JSON: ${json.error}`;
  const { value } = json;
  if (!isObject(value)) return "it must be an object.";
  const key = refusedKey(value, 0);
  if (key !== undefined) return key;
  const { name } = value;
  if (name !== undefined && !isPluginName(name)) {
    return "its name must have 1 to 64 letters, digits, dots, dashes or underscores, and begin and end with one of the first two.";
  }
  const lists = { skills: paths(value.skills), agents: paths(value.agents), commands: paths(value.commands) };
  const parts = { hooks: part(value.hooks), mcpServers: part(value.mcpServers) };
  const bad = Object.entries({ ...lists, ...parts }).find(([, found]) => found === "bad");
  if (bad) return `its ${bad[0]} must be a path inside the plugin, or a list of at most ${MAX_PATHS} of them.`;
  return Object.fromEntries(
    Object.entries({
      name,
      version: textOf(value.version, MAX_VERSION_CHARACTERS),
      description: textOf(value.description, MAX_DESCRIPTION_CHARACTERS),
      ...lists,
      ...parts,
    }).filter(([, found]) => found !== undefined),
  );
}

/** Returns whether the name is valid. Valid names are safe as folder names. */
export function isPluginName(name: unknown): name is string {
  return typeof name === "string" && NAME.test(name) && !REFUSED_KEYS.has(name);
}

function paths(value: unknown): readonly string[] | undefined | "bad" {
  if (value === undefined || value === null) return undefined;
  const list: unknown[] = Array.isArray(value) ? value : [value];
  const isFine = list.length <= MAX_PATHS && list.every((path) => typeof path === "string" && path !== "");
  return isFine ? (list as string[]) : "bad";
}

function part(value: unknown): ManifestPart | undefined | "bad" {
  if (isObject(value)) return { kind: "inline", value };
  const list = paths(value);
  return list === undefined || list === "bad" ? list : { kind: "files", paths: list };
}

function textOf(value: unknown, maxCharacters: number): string | undefined {
  if (typeof value !== "string") return undefined;
  return sanitise(value).replace(/\s+/g, " ").trim().slice(0, maxCharacters) || undefined;
}

/** Returns the problem with a key, if any. Needed because inline parts are passed on unchanged. */
function refusedKey(value: unknown, depth: number): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > MAX_DEPTH) return `it is nested more than ${MAX_DEPTH} levels deep.`;
  for (const [key, inner] of Object.entries(value)) {
    if (REFUSED_KEYS.has(key)) return `the key ${key} is not allowed.`;
    const problem = refusedKey(inner, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
