/** The folders that are searched for skills, in order. Of two skills with the same name, the first is used. */

import { delimiter, dirname, join, resolve } from "node:path";
import { defined } from "../../lib/defined.ts";
import type { SkillLocation } from "./skill.ts";

export interface SkillSearchPaths {
  /** Real path of the working directory. */
  readonly cwd: string;
  /** Real path. Without a repository it is absent, and only `cwd` is searched. */
  readonly gitRoot?: string;
  readonly stateRoot: string;
  readonly home: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly plugins?: readonly PluginSkills[];
  /** From the settings of the user or of a client. */
  readonly skillDirectories?: readonly string[];
  /** Real paths of further folders that the tools may use. */
  readonly addedDirectories?: readonly string[];
  /** False: searches no folders of the project or of the user's home. */
  readonly discovered?: boolean;
  /** The folder of troupe's own skills. */
  readonly builtin?: string;
}

interface PluginSkills {
  readonly name: string;
  readonly version?: string;
  readonly skillFolders: readonly string[];
  readonly commandFolders: readonly string[];
}

const PROJECT_FOLDERS = [".troupe/skills", ".github/skills", ".agents/skills", ".claude/skills"];
const COMMAND_FOLDER = ".claude/commands";
const VARIABLES = ["TROUPE_SKILLS_DIRS", "COPILOT_SKILLS_DIRS"];
const MAX_LEVELS = 32;
const MAX_LOCATIONS = 500;

export function skillLocations(searchPaths: SkillSearchPaths): SkillLocation[] {
  const isDiscovered = searchPaths.discovered !== false;
  const personal: SkillLocation[] = [
    { path: join(searchPaths.stateRoot, "skills"), source: "personal-copilot", form: "skill" },
    { path: join(searchPaths.home, ".agents/skills"), source: "personal-agents", form: "skill" },
  ];
  const levels = isDiscovered ? levelsUpTo(searchPaths.cwd, searchPaths.gitRoot) : [];
  const workspace = searchPaths.gitRoot ?? searchPaths.cwd;
  const all = [
    ...levels.flatMap((folder) => projectLocations(folder, { cwd: searchPaths.cwd, workspace, personal })),
    ...(isDiscovered ? personal : []),
    ...pluginLocations(searchPaths.plugins ?? []),
    ...customLocations(searchPaths),
    ...(searchPaths.addedDirectories ?? []).flatMap(addedLocations),
    ...(searchPaths.builtin === undefined ? [] : [skills(searchPaths.builtin, "builtin")]),
    // Skills come before commands of the same name.
    ...levels.map(
      (folder): SkillLocation => ({
        path: join(folder, COMMAND_FOLDER),
        source: folder === searchPaths.cwd ? "project" : "inherited",
        form: "command",
        workspace,
      }),
    ),
    ...pluginCommands(searchPaths.plugins ?? []),
  ];
  return distinct(all).slice(0, MAX_LOCATIONS);
}

const skills = (path: string, source: SkillLocation["source"]): SkillLocation => ({ path, source, form: "skill" });

/** Returns the folder and those above it up to the repository, nearest first. */
export function levelsUpTo(cwd: string, gitRoot: string | undefined): string[] {
  const levels = [cwd];
  for (let folder = cwd; gitRoot !== undefined && folder !== gitRoot && levels.length < MAX_LEVELS; ) {
    const parent = dirname(folder);
    if (parent === folder) return [cwd];
    levels.push(parent);
    folder = parent;
  }
  return levels;
}

/** Omits the user's own folders, which lie in the workspace if the home folder is the workspace. */
function projectLocations(
  folder: string,
  at: { cwd: string; workspace: string; personal: readonly SkillLocation[] },
): SkillLocation[] {
  const source = folder === at.cwd ? "project" : "inherited";
  return PROJECT_FOLDERS.map((name) => join(folder, name))
    .filter((path) => !at.personal.some((own) => own.path === path))
    .map((path) => ({ path, source, form: "skill", workspace: at.workspace }));
}

function pluginLocations(plugins: readonly PluginSkills[]): SkillLocation[] {
  return plugins.flatMap((plugin) =>
    plugin.skillFolders.map((path): SkillLocation => ({ ...skills(path, "plugin"), ...ofPlugin(plugin) })),
  );
}

function pluginCommands(plugins: readonly PluginSkills[]): SkillLocation[] {
  return plugins.flatMap((plugin) =>
    plugin.commandFolders.map(
      (path): SkillLocation => ({ path, source: "plugin", form: "command", ...ofPlugin(plugin) }),
    ),
  );
}

function ofPlugin({ name, version }: PluginSkills): Pick<SkillLocation, "pluginName" | "pluginVersion"> {
  return { pluginName: name, ...defined({ pluginVersion: version }) };
}

function customLocations({ environment = {}, skillDirectories = [], cwd }: SkillSearchPaths): SkillLocation[] {
  const fromVariables = VARIABLES.flatMap((name) => (environment[name] ?? "").split(",")).flatMap((part) =>
    part.split(delimiter),
  );
  return [...fromVariables, ...skillDirectories]
    .map((path) => path.trim())
    .filter((path) => path !== "" && !path.includes("\0"))
    .map((path) => skills(resolve(cwd, path), "custom"));
}

/** Access for tools does not imply trust, so these locations count as a workspace. */
function addedLocations(folder: string): SkillLocation[] {
  return PROJECT_FOLDERS.map((name) => ({ ...skills(join(folder, name), "custom"), workspace: folder }));
}

function distinct(locations: readonly SkillLocation[]): SkillLocation[] {
  return [...new Map([...locations].reverse().map((one) => [`${one.form} ${one.path}`, one])).values()].reverse();
}
