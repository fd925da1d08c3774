/** Finds agent files in order of precedence: of two agents with the same name, the first is used. */
import { join } from "node:path";
import type { AgentSource } from "../../agents/agent.ts";
import { levelsUpTo } from "../../context/skills/locations.ts";
import { readFolder } from "../../context/skills/read-inside.ts";
import { isInside } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import type { NoteAgent } from "./agents-notice.ts";

export interface AgentSearchPaths {
  /** Real path of the working directory. */
  readonly cwd: string;
  /** Real path; undefined outside of a repository, where only `cwd` is searched. */
  readonly gitRoot?: string;
  readonly stateRoot: string;
  readonly home: string;
  readonly plugins?: readonly { readonly name: string; readonly agentFolders: readonly string[] }[];
  /** Real paths of further folders opened to the tools. */
  readonly addedDirectories?: readonly string[];
  /** False: only agents of plugins and of `addedDirectories`. */
  readonly discovered?: boolean;
}

export interface AgentLocation {
  readonly path: string;
  readonly source: AgentSource;
  /** For folders of a workspace: the workspace's real path, which the folder must not leave. */
  readonly workspace?: string;
  readonly pluginName?: string;
}

export interface AgentFile {
  readonly location: AgentLocation;
  readonly path: string;
  readonly id: string;
  /** Real path that the file must not leave. Undefined for the user's own files, which may be links to anywhere. */
  readonly root?: string;
}

export const PROJECT_FOLDERS = [".troupe/agents", ".github/agents", ".claude/agents"] as const;
const MAX_LOCATIONS = 300;
const MAX_ENTRIES = 1000;
const MAX_FILES = 500;

/** Returns the folders to search. The user's come before the project's: a repository cannot replace a user's agent. */
export function agentLocations(searchPaths: AgentSearchPaths): AgentLocation[] {
  const isDiscovered = searchPaths.discovered !== false;
  const own = isDiscovered ? [userFolder(searchPaths.stateRoot), join(searchPaths.home, ".claude/agents")] : [];
  const levels = isDiscovered ? levelsUpTo(searchPaths.cwd, searchPaths.gitRoot) : [];
  const workspace = searchPaths.gitRoot ?? searchPaths.cwd;
  const ofProject = (folder: string, source: AgentSource, within: string): AgentLocation[] =>
    PROJECT_FOLDERS.map((name) => ({ path: join(folder, name), source, workspace: within }));
  const all: AgentLocation[] = [
    ...own.map((path) => ({ path, source: "user" as const })),
    ...levels.flatMap((folder) => ofProject(folder, folder === searchPaths.cwd ? "project" : "inherited", workspace)),
    ...(searchPaths.addedDirectories ?? []).flatMap((folder) => ofProject(folder, "project", folder)),
    ...(searchPaths.plugins ?? []).flatMap(({ name, agentFolders }) =>
      agentFolders.map((path) => ({ path, source: "plugin" as const, pluginName: name })),
    ),
  ];
  const first = new Map([...all].reverse().map((location) => [location.path, location]));
  return all.filter((location) => first.get(location.path) === location).slice(0, MAX_LOCATIONS);
}

export const userFolder = (stateRoot: string): string => join(stateRoot, "agents");

/** Returns every file that may be an agent, in order. */
export function agentFiles(locations: readonly AgentLocation[], note: NoteAgent): AgentFile[] {
  const files = locations.flatMap((location) => filesIn(location, note));
  const [next] = files.slice(MAX_FILES);
  if (next) note({ kind: "limit", path: next.path, message: `Only the first ${MAX_FILES} files of agents are read.` });
  return files.slice(0, MAX_FILES);
}

/** Returns the id of an agent file: `review.agent.md` and `review.md` are both `review`. */
export function agentId(fileName: string): string | undefined {
  const id = /^(.+?)(?:\.agent)?\.md$/i.exec(fileName)?.[1];
  return id === undefined || /^readme$/i.test(id) ? undefined : id;
}

function filesIn(location: AgentLocation, note: NoteAgent): AgentFile[] {
  const { path, workspace, source } = location;
  const read = readFolder(path, MAX_ENTRIES);
  const root = read && realPath(path);
  if (read === undefined || root === undefined) return [];
  if (workspace !== undefined && !isInside(root, [workspace])) {
    note({
      kind: "refused",
      path,
      message: `${path} is a link to a place outside its workspace; its agents are not used.`,
    });
    return [];
  }
  if (!read.complete) note({ kind: "limit", path, message: `Only ${MAX_ENTRIES} entries of ${path} are read.` });
  return read.entries.flatMap(({ name, kind }) => {
    const id = kind === "file" || kind === "link" ? agentId(name) : undefined;
    if (id === undefined) return [];
    return [{ location, path: join(path, name), id, ...(source !== "user" && { root }) }];
  });
}
