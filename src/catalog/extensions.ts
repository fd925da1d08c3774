/**
 * Finds extensions: programs that join a session as clients. They come from the project, the user's state folder and
 * plugins; finding them runs nothing. A project's extensions are used only as approved, or if the program that opens
 * the session vouches for the folder.
 */
import { dirname, join } from "node:path";
import { digestFolder } from "../context/skills/pin.ts";
import { readFolder } from "../context/skills/read-inside.ts";
import { HOST_NOTATION, hostRule, MAX_PROGRAM_HOSTS, NO_NETWORK } from "../lib/host-rule.ts";
import { isObject, parseJson } from "../lib/json.ts";
import { isInside } from "../lib/node/paths.ts";
import { realPath } from "../lib/node/real-path.ts";
import { readSmallFile } from "../lib/node/small-file.ts";
import { type ItemTrust, type PinnedItem, shownFacts } from "../lib/pinned-item.ts";
import { quotedLine } from "../lib/quoting.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { CatalogNotice } from "./catalog.ts";
import type { Plugin } from "./plugins/plugins.ts";

export interface FoundExtension {
  /** `project:name`, `user:name` or `plugin:plugin-name:name`. */
  readonly id: string;
  readonly name: string;
  readonly source: "project" | "user" | "plugin";
  /** Real path of its module. */
  readonly path: string;
  readonly pluginName?: string;
  /** Trust of the process: "project" extensions run contained. */
  readonly scope: "user" | "project";
  /** Hosts and variables requested by the manifest. They limit only a project's extensions. */
  readonly needs: ExtensionNeeds;
}

interface ExtensionNeeds {
  readonly hosts: readonly string[];
  /** Names of variables, in addition to those that every program gets. */
  readonly env: readonly string[];
}

export interface ExtensionsFound {
  readonly extensions: readonly FoundExtension[];
  /** Extensions left out, and why. */
  readonly notices: readonly CatalogNotice[];
}

export interface ExtensionSearchPaths {
  /** The root of the project. */
  readonly root: string;
  readonly stateRoot: string;
  readonly plugins: readonly Pick<Plugin, "name" | "root">[];
  /** Checks an item against the folder's trust. */
  check(item: PinnedItem<"extension">): ItemTrust;
  /** The program that opens the session vouches for the project's extensions. */
  readonly isVouchedFor: boolean;
}

const PROJECT_EXTENSIONS = ".github/extensions";
const ENTRY = "extension.mjs";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_ENTRIES = 1000;
const MAX_EXTENSIONS = 50;

/** Returns extensions in start order. A project's extension replaces the user's own of the same name. */
export async function findExtensions(searchPaths: ExtensionSearchPaths): Promise<ExtensionsFound> {
  const notices: CatalogNotice[] = [];
  const note = (message: string): void => void notices.push({ kind: "extension", message });
  const project = await withApproval(
    extensionsIn(join(searchPaths.root, PROJECT_EXTENSIONS), "project", note),
    searchPaths,
    note,
  );
  const own = extensionsIn(join(searchPaths.stateRoot, "extensions"), "user", note).filter(
    ({ name }) => !project.some((other) => other.name === name),
  );
  const plugged = searchPaths.plugins.flatMap((plugin) => {
    const found = extensionsIn(join(plugin.root, "extensions"), "plugin", note);
    return found.map((one) => ({ ...one, id: `plugin:${plugin.name}:${one.name}`, pluginName: plugin.name }));
  });
  const all = [...project, ...own, ...plugged];
  if (all.length > MAX_EXTENSIONS) note(`Only the first ${MAX_EXTENSIONS} of ${all.length} extensions are used.`);
  return { extensions: all.slice(0, MAX_EXTENSIONS), notices };
}

/** Lists the extensions of a folder. Links are not followed. */
function extensionsIn(
  folder: string,
  source: FoundExtension["source"],
  note: (message: string) => void,
): FoundExtension[] {
  const entries = readFolder(folder, MAX_ENTRIES)?.entries ?? [];
  return entries.flatMap(({ name, kind }) => {
    if (kind !== "folder") return [];
    const path = entryOf(join(folder, name));
    if (path === undefined) return [];
    if (NAME.test(name))
      return [{ id: `${source}:${name}`, name, source, path, scope: "user" as const, needs: NO_NEEDS }];
    note(
      `The extension in ${quotedLine(join(folder, name))} is not used: its name may contain only letters, digits, ".", "_" and "-".`,
    );
    return [];
  });
}

/** Returns undefined if there is no module, or it leads out of its folder. */
function entryOf(folder: string): string | undefined {
  const [real, path] = [realPath(folder), realPath(join(folder, ENTRY))];
  return real !== undefined && path !== undefined && isInside(path, [real]) ? path : undefined;
}

const MANIFEST = "extension.json";
const MAX_MANIFEST_BYTES = 64 * 1024;
const MAX_NAMES = 100;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const NO_NEEDS: ExtensionNeeds = { hosts: [], env: [] };

/** Reads the manifest, which is part of the approved folder. Throws a `TroupeError` if it is invalid. */
function readManifest(folder: string): ExtensionNeeds {
  const path = join(folder, MANIFEST);
  const refuse = (problem: string): never => {
    const hint = 'It may contain "hosts" and "env", two lists of text.';
    throw new TroupeError("configuration", `${path} ${problem}.`, { hint });
  };
  const file = readSmallFile(path, { maxBytes: MAX_MANIFEST_BYTES });
  if (file.kind === "missing") return NO_NEEDS;
  if (file.kind === "refused") return refuse(file.reason);
  const json = parseJson(file.text);
  if (!json.ok || !isObject(json.value)) return refuse("is not a JSON object");
  const { hosts = [], env = [] } = json.value;
  const isList = (value: unknown, isFit: (text: string) => boolean, most: number): value is string[] =>
    Array.isArray(value) && value.length <= most && value.every((one) => typeof one === "string" && isFit(one));
  if (!isList(hosts, (text) => hostRule(text) !== undefined, MAX_PROGRAM_HOSTS))
    return refuse(`has "hosts" that cannot be used: ${HOST_NOTATION}, at most ${MAX_PROGRAM_HOSTS}`);
  if (!isList(env, (text) => VARIABLE.test(text), MAX_NAMES))
    return refuse(`has "env" that cannot be used: write at most ${MAX_NAMES} names of variables`);
  return { hosts, env };
}

async function withApproval(
  found: readonly FoundExtension[],
  searchPaths: ExtensionSearchPaths,
  note: (message: string) => void,
): Promise<FoundExtension[]> {
  if (searchPaths.isVouchedFor) return [...found];
  const used: FoundExtension[] = [];
  for (const extension of found) {
    const checked = await needsOf(extension, searchPaths);
    if (typeof checked === "object") used.push({ ...extension, scope: "project", needs: checked });
    else note(`The extension ${extension.name} of this folder was not started: ${checked}`);
  }
  return used;
}

/** Returns the approved manifest values, or the reason why the extension must not run. */
async function needsOf(
  { name, path }: FoundExtension,
  { check }: ExtensionSearchPaths,
): Promise<ExtensionNeeds | string> {
  const folder = dirname(path);
  try {
    const { digest, files } = await digestFolder(folder, { root: folder, what: `extension ${name}` });
    const needs = readManifest(folder);
    const shown = shownFacts([
      `Extension "${name}" in ${folder}: ${files.files.length} files; its program runs while a session is open`,
      `hosts: ${needs.hosts.join(", ") || NO_NETWORK}`,
      `your variables that it refers to: ${needs.env.join(", ") || "none"}`,
    ]);
    switch (check({ kind: "extension", id: folder, digest, shown })) {
      case "approved":
        return needs;
      case "changed":
        return "it has changed since it was approved. Review it, then run: troupe trust";
      default:
        return "it is not approved. Review it, then run: troupe trust";
    }
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    return `${error.message} ${error.hint ?? ""}`.trim();
  }
}
