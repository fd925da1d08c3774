/**
 * Plugins: folders that combine skills, agents, commands, hooks and MCP servers. This file finds and checks them; each
 * kind of part is loaded by its own catalog. Loading a plugin runs nothing.
 */

import { basename, join, resolve } from "node:path";
import { digestFolder } from "../../context/skills/pin.ts";
import { readFolder } from "../../context/skills/read-inside.ts";
import type { CheckPinned } from "../../context/skills/skill.ts";
import { defined } from "../../lib/defined.ts";
import { isInside } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { isPluginName, type Manifest, readManifest } from "./plugin-manifest.ts";
import { findParts, isEmpty, type PluginParts } from "./plugin-parts.ts";
import { disabledPluginFolders, INSTALLED_PLUGINS, registryPath } from "./plugin-registry.ts";

export interface Plugin extends PluginParts {
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  /** Real path. */
  readonly root: string;
  /** Folder for the plugin's own data. The code that runs its parts creates it. */
  readonly dataDirectory: string;
  readonly source: PluginOrigin;
}

/** `flag`: named for this run. `settings`: from the user's settings. `installed`: in the state root. */
type PluginOrigin = "flag" | "settings" | "installed";

export interface PluginNotice {
  readonly kind: "broken" | "untrusted" | "changed" | "clash" | "limit" | "part";
  readonly path: string;
  readonly message: string;
}

export interface PluginSearchPaths {
  readonly cwd: string;
  readonly stateRoot: string;
  /** `--plugin-dir`, in order. These come first, are always enabled, and need no trust because the user named them. */
  readonly given?: readonly string[];
  /** `pluginDirectories` of the user's settings. */
  readonly configured?: readonly string[];
  /** Only plugins given by flag (`COPILOT_PLUGIN_DIR_ONLY`). */
  readonly onlyGiven?: boolean;
  /** By name; default true. */
  readonly enabled?: Readonly<Record<string, boolean>>;
  /** Real path of the workspace. A plugin inside of it needs trust unless a flag names it. */
  readonly workspace?: string;
  /** Without it, no plugin of the workspace is trusted. */
  readonly check?: CheckPinned;
}

const MAX_PLUGINS = 100;
const MAX_ENTRIES = 1000;
const MAX_PINNED_FILES = 500;

export async function loadPlugins(
  searchPaths: PluginSearchPaths,
): Promise<{ plugins: readonly Plugin[]; notices: readonly PluginNotice[] }> {
  const notices: PluginNotice[] = [];
  const note = (notice: PluginNotice): void => void notices.push(notice);
  const plugins = new Map<string, Plugin>();
  for (const { path, source } of pluginFolders(searchPaths, note)) {
    if (plugins.size >= MAX_PLUGINS) {
      note({ kind: "limit", path, message: `Only the first ${MAX_PLUGINS} plugins are used.` });
      break;
    }
    const plugin = await loadPlugin(path, { source, searchPaths, note });
    if (plugin === undefined) continue;
    const key = plugin.name.toLowerCase();
    const earlier = plugins.get(key);
    if (earlier === undefined) plugins.set(key, plugin);
    else if (earlier.root !== plugin.root) {
      const message = `The plugin ${plugin.name} in ${plugin.root} is not used: ${earlier.root} has the same name and comes first.`;
      note({ kind: "clash", path: plugin.root, message });
    }
  }
  return { plugins: [...plugins.values()], notices };
}

/** Returns the environment of a plugin's hooks and MCP servers. */
export function pluginEnvironment(plugin: Plugin, projectDirectory: string): Record<string, string> {
  return {
    PLUGIN_ROOT: plugin.root,
    COPILOT_PLUGIN_ROOT: plugin.root,
    CLAUDE_PLUGIN_ROOT: plugin.root,
    COPILOT_PLUGIN_DATA: plugin.dataDirectory,
    CLAUDE_PLUGIN_DATA: plugin.dataDirectory,
    COPILOT_PROJECT_DIR: projectDirectory,
    CLAUDE_PROJECT_DIR: projectDirectory,
  };
}

interface PluginFolder {
  readonly path: string;
  readonly source: PluginOrigin;
}

function pluginFolders(searchPaths: PluginSearchPaths, note: LoadContext["note"]): PluginFolder[] {
  const { cwd, stateRoot, given = [], configured = [] } = searchPaths;
  const named = (paths: readonly string[], source: PluginOrigin): PluginFolder[] =>
    paths.filter((path) => path !== "" && !path.includes("\0")).map((path) => ({ path: resolve(cwd, path), source }));
  const flags = named(given, "flag");
  if (searchPaths.onlyGiven) return flags;
  return [...flags, ...named(configured, "settings"), ...installedFolders(stateRoot, note)];
}

/**
 * Lists plugins in the folder itself, or one level deeper in the folder of their origin. A damaged registry disables
 * them all: it may have disabled any of them.
 */
function installedFolders(stateRoot: string, note: LoadContext["note"]): PluginFolder[] {
  const found = foldersIn(join(stateRoot, INSTALLED_PLUGINS)).flatMap((path) =>
    readManifest(path) === undefined ? foldersIn(path) : [path],
  );
  if (found.length === 0) return [];
  const disabled = disabledPluginFolders(stateRoot);
  if ("damaged" in disabled) {
    const path = registryPath(stateRoot);
    const message = `Installed plugins were left out: ${path} ${disabled.damaged}. Repair the file, or delete it to enable them all.`;
    note({ kind: "broken", path, message });
    return [];
  }
  return found.filter((path) => !disabled.has(path)).map((path) => ({ path, source: "installed" }));
}

/** Lists subfolders. Links are not followed. */
function foldersIn(folder: string): string[] {
  const entries = readFolder(folder, MAX_ENTRIES)?.entries ?? [];
  return entries.filter(({ kind }) => kind === "folder").map(({ name }) => join(folder, name));
}

interface LoadContext {
  readonly source: PluginOrigin;
  readonly searchPaths: PluginSearchPaths;
  readonly note: (notice: PluginNotice) => void;
}

async function loadPlugin(path: string, { source, searchPaths, note }: LoadContext): Promise<Plugin | undefined> {
  const broken = (problem: string): undefined =>
    void note({ kind: "broken", path, message: `The plugin in ${path} is not used: ${problem}` });
  const root = realPath(path);
  if (root === undefined || readFolder(root, 1) === undefined) return broken("there is no such folder.");
  if (!(await isTrusted(root, { source, searchPaths, note }))) return undefined;
  const read = readManifest(root);
  if (read && !read.ok) return broken(`${read.path}: ${read.problem}`);
  const manifest: Manifest = read?.manifest ?? {};
  const name = manifest.name ?? basename(root);
  if (!isPluginName(name))
    return broken("the name of its folder is not a valid plugin name; set a name in plugin.json.");
  if (source !== "flag" && isOff(name, searchPaths.enabled)) return undefined;
  const parts = findParts(root, manifest, (problem) =>
    note({ kind: "part", path: root, message: `The plugin ${name}: ${problem}` }),
  );
  if (read === undefined && isEmpty(parts)) {
    return source === "installed" ? undefined : broken("it has neither a plugin.json nor any part of a plugin.");
  }
  return {
    name,
    ...defined({ version: manifest.version, description: manifest.description }),
    root,
    dataDirectory: join(searchPaths.stateRoot, "plugin-data", name),
    source,
    ...parts,
  };
}

function isOff(name: string, enabled: PluginSearchPaths["enabled"] = {}): boolean {
  return Object.hasOwn(enabled, name) && enabled[name] === false;
}

/** Returns whether a plugin may be used. One in the workspace must match its approval, unless named by flag. */
async function isTrusted(root: string, { source, searchPaths, note }: LoadContext): Promise<boolean> {
  const { workspace, check } = searchPaths;
  if (source === "flag" || workspace === undefined || !isInside(root, [workspace])) return true;
  const untrusted = `The plugin in ${root} is not used: its folder is not trusted. Review it, then run: troupe trust`;
  if (check === undefined) {
    note({ kind: "untrusted", path: root, message: untrusted });
    return false;
  }
  try {
    const what = `plugin ${basename(root)}`;
    const { digest, files } = await digestFolder(root, { root, what, maxFiles: MAX_PINNED_FILES });
    const shown = `Plugin in ${root}: ${files.files.length} files, of which ${files.scripts.length} can be run`;
    const verdict = await check({ kind: "plugin", id: root, digest, shown });
    if (verdict === "approved") return true;
    const changed = `The plugin in ${root} is not used: it has changed since it was approved. Review it, then run: troupe trust`;
    note({
      kind: verdict === "changed" ? "changed" : "untrusted",
      path: root,
      message: verdict === "changed" ? changed : untrusted,
    });
    return false;
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    note({ kind: "untrusted", path: root, message: `${error.message} ${error.hint ?? ""}`.trim() });
    return false;
  }
}
