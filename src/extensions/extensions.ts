/**
 * Runs extensions. Each is a separate process that talks over stdin and stdout like any client of a session. This
 * folder starts and stops them. `catalog/extensions.ts` decides which may run; the server decides what they may
 * request. An extension never outlives this process, and its child processes are killed when it ends.
 */

import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { dirname } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { defined } from "../lib/defined.ts";
import type { PreparedProgram, PrepareProgram } from "../lib/node/program.ts";
import { clip, sanitise } from "../lib/text.ts";
import { isGiven } from "./given.ts";
import { packagesAround, resolverModule, sdkFolder } from "./sdk-resolver.ts";

/** Launch command supplied by a client, in place of the default. */
export interface LaunchProfile {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ExtensionLaunch {
  /** Path of the extension's module. */
  readonly path: string;
  readonly scope: "user" | "project";
  readonly cwd: string;
  readonly sessionId: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Names of secret variables, in addition to names that look secret. */
  readonly secretNames: readonly string[];
  /** Folder of the SDK, in place of an installed one. */
  readonly sdkPath?: string | undefined;
  readonly profile?: LaunchProfile | undefined;
  /** Approved hosts and variables of a project's extension. */
  readonly hosts: readonly string[];
  readonly variableNames: readonly string[];
  readonly prepare: PrepareProgram;
}

export interface ExtensionProcess {
  readonly pid: number;
  /** Its stdout and its stdin. */
  readonly fromExtension: Readable;
  readonly toExtension: Writable;
  /** Resolves once, with a description of how the process ended. */
  readonly ended: Promise<string>;
  /** Returns the last part of its stderr output. */
  lastStderr(): string;
  /** Asks the process to end, and kills it after `STOP_MS`. Resolves when its process group is gone. */
  stop(): Promise<void>;
}

/** Grace period between SIGTERM and SIGKILL. */
const STOP_MS = 2_000;
const MAX_STDERR_BYTES = 8 * 1024;
const MAX_VALUE_CHARACTERS = 100_000;

export async function startExtension(launch: ExtensionLaunch): Promise<ExtensionProcess> {
  const { cwd, prepare, scope } = launch;
  const sdk = sdkFolder(launch.sdkPath, dirname(launch.path));
  const environment = environmentOf(launch, sdk);
  const command = commandOf(launch, sdk);
  const readable = [command.program, ...(sdk === undefined ? [] : [packagesAround(sdk)])];
  const prepared = await prepare({ ...command, cwd, environment, scope, hosts: launch.hosts, readable });
  const child = await spawned(prepared, cwd).catch(async (cause: unknown) => {
    await prepared.release();
    throw cause;
  });
  const pid = child.pid ?? 0;
  prepared.started?.(pid);
  const words = lastBytes(child.stderr);
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? `exit code ${code}`}`));
  });
  const cleared = ended.then(async () => {
    // Its child processes may have outlived it.
    signalGroup(child, "SIGKILL");
    await prepared.release();
  });
  return {
    pid,
    fromExtension: child.stdout,
    toExtension: child.stdin,
    ended,
    lastStderr: words,
    async stop() {
      child.stdin.end();
      signalGroup(child, "SIGTERM");
      const late = new AbortController();
      const patience = delay(STOP_MS, undefined, { signal: late.signal }).catch(() => undefined);
      await Promise.race([ended, patience]);
      late.abort();
      signalGroup(child, "SIGKILL");
      await cleared;
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    },
  };
}

function commandOf({ path, profile }: ExtensionLaunch, sdk: string | undefined) {
  if (profile) return { program: profile.executable, arguments: profile.args };
  const resolver = sdk === undefined ? [] : ["--import", resolverModule(sdk)];
  return { program: process.execPath, arguments: [...resolver, path] };
}

/**
 * Returns the environment. A project's extension gets the standard variables and those approved from its manifest. The
 * user's own extension gets everything except secrets. Either can request more by name once connected.
 */
function environmentOf(launch: ExtensionLaunch, sdk: string | undefined): Record<string, string> {
  const { environment, sessionId, profile } = launch;
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && isGiven(name, launch) && value.length <= MAX_VALUE_CHARACTERS) given[name] = value;
  }
  for (const [name, value] of Object.entries(profile?.env ?? {})) if (value !== undefined) given[name] = value;
  return {
    ...given,
    SESSION_ID: sessionId,
    COPILOT_EXTENSION_PARENT_PID: String(process.pid),
    ...defined({ COPILOT_SDK_PATH: sdk }),
  };
}

async function spawned(prepared: PreparedProgram, cwd: string): Promise<ChildProcessWithoutNullStreams> {
  const { spawn } = await import("node:child_process");
  const { program, arguments: words, environment } = prepared;
  const child = spawn(program, [...words], {
    cwd,
    env: { ...environment },
    detached: true,
    windowsHide: true,
    stdio: "pipe",
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  child.on("error", () => undefined);
  return child;
}

function lastBytes(stream: Readable): () => string {
  let kept = Buffer.alloc(0);
  stream.on("data", (bytes: Buffer) => {
    kept = Buffer.from(Buffer.concat([kept, bytes]).subarray(-MAX_STDERR_BYTES));
  });
  return () => clip(sanitise(kept.toString("utf8")).trim(), MAX_STDERR_BYTES);
}

function signalGroup({ pid }: ChildProcessWithoutNullStreams, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === "win32" ? pid : -pid, name);
  } catch {
    // The process group is already gone.
  }
}
