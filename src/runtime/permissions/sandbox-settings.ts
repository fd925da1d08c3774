/** Translates settings to sandbox options. A project's settings can only make them stricter. */

import { homedir } from "node:os";
import { isAbsolute, join, resolve, sep } from "node:path";
import type { Settings } from "../../catalog/settings/settings-schema.ts";
import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { hostRules } from "../../tools/shell/network/network-rules.ts";
import type { CommandLimits } from "../../tools/shell/process/limits.ts";
import type { SandboxMode, SandboxOptions } from "../../tools/shell/sandbox/sandbox.ts";

export interface SandboxSettings extends Pick<SandboxOptions, "denied" | "writable" | "environmentFiles" | "profile"> {
  readonly mode?: SandboxMode;
  /** Reachable hosts when the network is otherwise closed; see `tools/shell/network/network-rules.ts`. */
  readonly allowedHosts?: readonly string[];
  /** Whether allowed hosts may be in a private network or on this machine. */
  readonly localNetwork?: boolean;
}

export interface RequestedSandbox {
  readonly sandbox: SandboxSettings;
  readonly limits: Partial<CommandLimits>;
}

const LIMITS = ["processes", "fileBytes", "openFiles", "addressSpaceBytes"] as const satisfies (keyof CommandLimits)[];

/** Throws a configuration error for settings that cannot be enforced. `root` is the base of relative denied paths. */
export function requestedSandbox(
  settings: Settings["sandbox"] = {},
  folders: { readonly root: string; readonly stateRoot: string },
): RequestedSandbox {
  const { mode, network = {}, writablePaths = [], deniedPaths = [], allowEnvironmentFiles, limits = {} } = settings;
  const { allowedHosts = [], allowLocalNetwork } = network;
  hostRules(allowedHosts);
  return {
    sandbox: {
      ...defined({ mode }),
      ...(allowedHosts.length > 0 && { allowedHosts }),
      ...defined({ localNetwork: allowLocalNetwork }),
      ...(writablePaths.length > 0 && {
        writable: writablePaths.map((path) => writableFolder(path, folders.stateRoot)),
      }),
      ...(deniedPaths.length > 0 && { denied: deniedPaths.map((path) => resolve(folders.root, inHome(path))) }),
      ...defined({ environmentFiles: allowEnvironmentFiles }),
    },
    limits: limitsOf(limits),
  };
}

/** Throws for a relative path, because its meaning would depend on the working directory. */
function writableFolder(path: string, stateRoot: string): string {
  const folder = inHome(path);
  if (!isAbsolute(folder))
    throw unusable(`writablePaths: ${path}`, "Write an absolute path, or one that begins with ~/.");
  const real = resolve(folder);
  if (real === sep) throw unusable("writablePaths: /", "Name the folders that commands may change.");
  if (real === stateRoot || real.startsWith(stateRoot + sep))
    throw unusable(`writablePaths: ${path}`, "troupe keeps its own rules there; name another folder.");
  return real;
}

function inHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

function limitsOf(limits: Readonly<Record<string, number>>): Partial<CommandLimits> {
  const unknown = Object.keys(limits).find((name) => !LIMITS.some((known) => known === name));
  if (unknown !== undefined) throw unusable(`limits.${unknown}`, `Known limits: ${LIMITS.join(", ")}.`);
  return Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, Math.max(1, Math.floor(value))]));
}

function unusable(what: string, hint: string): TroupeError {
  return new TroupeError("configuration", `In settings, sandbox.${what} cannot be used.`, { hint });
}
