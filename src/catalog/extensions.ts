/**
 * Extensions: programs that join a session as clients of it. Here they are found, in the project, the person's home and in
 * plugins; nothing runs by being found. Those of a project are used only as a person approved them, or where the program
 * that opens the session answers for the folder.
 */
import { dirname, join } from "node:path";
import { digestFolder } from "../context/skills/pin.ts";
import { readFolder, realPath } from "../context/skills/read-inside.ts";
import { isInside } from "../lib/node/paths.ts";
import type { ItemTrust, PinnedItem } from "../lib/pinned-item.ts";
import { quotedLine } from "../lib/quoting.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Notice } from "./catalog.ts";
import type { Plugin } from "./plugins.ts";

export interface FoundExtension {
  /** `project:name`, `user:name` or `plugin:plugin-name:name`. */
  readonly id: string;
  readonly name: string;
  readonly source: "project" | "user" | "plugin";
  /** Real path of its module. */
  readonly path: string;
  readonly pluginName?: string;
  /** Whose words decided that it runs: what a project brings is contained. */
  readonly scope: "user" | "project";
}

export interface ExtensionsFound {
  readonly extensions: readonly FoundExtension[];
  /** What was left out, and why. */
  readonly notices: readonly Notice[];
}

export interface ExtensionPlaces {
  /** The root of the project. */
  readonly root: string;
  readonly stateRoot: string;
  readonly plugins: readonly Pick<Plugin, "name" | "root">[];
  /** Of the folder's trust. */
  check(item: PinnedItem<"extension">): ItemTrust;
  /** The program that opens the session answers for what the project brings. */
  readonly isVouchedFor: boolean;
}

const PROJECT_EXTENSIONS = ".github/extensions";
const ENTRY = "extension.mjs";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_ENTRIES = 1000;
const MAX_EXTENSIONS = 50;

/** In the order in which they start. A project's takes the place of a person's own of the same name. */
export async function findExtensions(places: ExtensionPlaces): Promise<ExtensionsFound> {
  const notices: Notice[] = [];
  const note = (message: string): void => void notices.push({ kind: "extension", message });
  const project = await approved(extensionsIn(join(places.root, PROJECT_EXTENSIONS), "project", note), places, note);
  const own = extensionsIn(join(places.stateRoot, "extensions"), "user", note).filter(
    ({ name }) => !project.some((other) => other.name === name),
  );
  const plugged = places.plugins.flatMap((plugin) => {
    const found = extensionsIn(join(plugin.root, "extensions"), "plugin", note);
    return found.map((one) => ({ ...one, id: `plugin:${plugin.name}:${one.name}`, pluginName: plugin.name }));
  });
  const all = [...project, ...own, ...plugged];
  if (all.length > MAX_EXTENSIONS) note(`Only the first ${MAX_EXTENSIONS} of ${all.length} extensions are used.`);
  return { extensions: all.slice(0, MAX_EXTENSIONS), notices };
}

/** Links are not followed: what is installed lies there. */
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
    if (NAME.test(name)) return [{ id: `${source}:${name}`, name, source, path, scope: "user" as const }];
    note(
      `The extension in ${quotedLine(join(folder, name))} is not used: letters, digits, ".", "_" and "-" make a name.`,
    );
    return [];
  });
}

/** Undefined where there is none, or where it leads out of its folder. */
function entryOf(folder: string): string | undefined {
  const [real, path] = [realPath(folder), realPath(join(folder, ENTRY))];
  return real !== undefined && path !== undefined && isInside(path, [real]) ? path : undefined;
}

async function approved(
  found: readonly FoundExtension[],
  places: ExtensionPlaces,
  note: (message: string) => void,
): Promise<FoundExtension[]> {
  if (places.isVouchedFor) return [...found];
  const used: FoundExtension[] = [];
  for (const extension of found) {
    const problem = await problemOf(extension, places);
    if (problem === undefined) used.push({ ...extension, scope: "project" });
    else note(`The extension ${extension.name} of this folder does not run: ${problem}`);
  }
  return used;
}

/** Why it must not run; undefined when it is what a person approved. */
async function problemOf({ name, path }: FoundExtension, { check }: ExtensionPlaces): Promise<string | undefined> {
  const folder = dirname(path);
  try {
    const { digest, files } = await digestFolder(folder, { root: folder, what: `extension ${name}` });
    const shown = `Extension "${name}" in ${folder}: ${files.files.length} files; its program runs while a session is open`;
    switch (check({ kind: "extension", id: folder, digest, shown })) {
      case "approved":
        return undefined;
      case "changed":
        return "it has changed since it was approved. Look at it, then run: troupe trust";
      default:
        return "nobody has approved it. Look at it, then run: troupe trust";
    }
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    return `${error.message} ${error.hint ?? ""}`.trim();
  }
}
