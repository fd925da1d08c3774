/** Lists available skills, agents, instructions, servers and settings for programs without a session. */

import { homedir } from "node:os";
import { join } from "node:path";
import { agentLocations } from "../../catalog/agents/agents-locations.ts";
import { loadSettings } from "../../catalog/settings/settings.ts";
import { changeSettings, type SettingsObject } from "../../catalog/settings/settings-change.ts";
import { SettingsSchema } from "../../catalog/settings/settings-schema.ts";
import { skillLocations } from "../../context/skills/locations.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { userServers } from "../../tools/mcp/config/config-store.ts";
import type { Runtime, RuntimeOptions } from "../runtime.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

type Environment = RuntimeOptions["environment"];

export interface DiscoveryHost {
  readonly runtime: Pick<Runtime, "home">;
  readonly environment: Environment;
}

/** Returns what a session in this folder would find. Runs nothing. */
export async function discoverIn(
  folder: string,
  host: DiscoveryHost,
  more: { readonly skillDirectories?: readonly string[] } = {},
): Promise<Workspace> {
  const context = workingDirectory(folder);
  return openWorkspace(more, { context, stateRoot: host.runtime.home, environment: host.environment });
}

/** Returns the extensions of the user and of plugins. A project's extensions belong to sessions. */
export async function ownExtensions(host: DiscoveryHost, folder: string) {
  const context = workingDirectory(folder);
  const where = { context, stateRoot: host.runtime.home, environment: host.environment };
  const { extensions, flags } = await openWorkspace({ extensions: true }, where);
  return {
    isOn: flags.has("EXTENSIONS"),
    extensions: extensions.extensions.filter(({ source }) => source !== "project"),
  };
}

interface SearchedFolder {
  readonly path: string;
  readonly scope: string;
  readonly preferredForCreation: boolean;
  readonly projectPath?: string;
}

/** Returns the folders searched for skills or agents. `preferredForCreation` marks the folder for new ones. */
export function searchedFolders(kind: "skills" | "agents", folder: string, host: DiscoveryHost): SearchedFolder[] {
  const { cwd, gitRoot } = workingDirectory(folder);
  const where = { cwd, ...defined({ gitRoot }), stateRoot: host.runtime.home, home: homedir() };
  const located =
    kind === "skills"
      ? skillLocations({ ...where, environment: host.environment }).filter(({ form }) => form === "skill")
      : agentLocations(where);
  const preferred = join(cwd, kind === "skills" ? ".github/skills" : ".github/agents");
  return located.map(({ path, source, workspace }) => {
    const isProject = workspace !== undefined;
    return {
      path,
      scope: isProject ? "project" : kind === "agents" ? "user" : source,
      preferredForCreation: path === preferred,
      ...(isProject && { projectPath: folder }),
    };
  });
}

/** Returns the user's own servers, as written. */
export const ownServers = ({ runtime }: DiscoveryHost) => userServers({ disk: nodeDisk, stateRoot: runtime.home });

/** Returns the user's settings and the defaults of those not set. */
export function readOwnSettings(
  host: DiscoveryHost,
): Record<string, { value: Json; default: Json; isDefault: boolean }> {
  const { effective } = loadSettings({
    stateRoot: host.runtime.home,
    cwd: host.runtime.home,
    isTrusted: () => false,
  });
  const known: Readonly<Record<string, unknown>> = { ...effective };
  const names = Object.keys(SettingsSchema.unwrap().shape).filter((name) => name !== "$schema");
  return Object.fromEntries(
    names.map((name) => {
      const initial = defaults[name] ?? null;
      const value = (known[name] as Json | undefined) ?? initial;
      return [name, { value, default: initial, isDefault: known[name] === undefined }];
    }),
  );
}

/** Defaults of settings that are not set. */
const defaults: Readonly<Record<string, Json>> = {
  stream: false,
  askUser: true,
  customInstructions: true,
  disableAllHooks: false,
  logLevel: "warning",
};

/** Changes the user's settings; null deletes one. Throws a `TroupeError` and changes nothing if a value is invalid. */
export async function changeOwnSettings(host: DiscoveryHost, changes: Readonly<Record<string, Json>>): Promise<void> {
  await changeSettings(join(host.runtime.home, "settings.json"), (current): SettingsObject => {
    const next: Record<string, Json> = { ...current };
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) delete next[name];
      else next[name] = value;
    }
    return next;
  });
}
