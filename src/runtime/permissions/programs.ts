/**
 * Starts hooks and MCP servers. Programs that the user configured run as the user, with limits. A project's programs
 * run in the sandbox of shell commands: they can write the workspace except protected names. They cannot see
 * credentials or troupe's state, or reach Unix sockets.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { steersLauncher } from "../../lib/node/child-environment.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { PreparedProgram, PrepareProgram, ProgramRequest } from "../../lib/node/program.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { MARK_NAME } from "../../tools/shell/process/family.ts";
import type { CommandLimits } from "../../tools/shell/process/limits.ts";
import type { Watchdog } from "../../tools/shell/process/watchdog.ts";
import type { PreparedSandbox } from "../../tools/shell/sandbox/sandbox.ts";
import type { SandboxSettings } from "./sandbox-settings.ts";
import type { SandboxSource } from "./shells.ts";

export interface ProgramPreparerOptions {
  readonly sandboxes: Pick<SandboxSource, "get">;
  /** Real paths that a project's programs may change. */
  readonly workspace: readonly string[];
  /** Folder for caches of a project's programs, separate for each project. */
  readonly stateRoot: string;
  readonly disk: Disk;
  /**
   * Further real paths they may change. Must not include caches of the user: files placed there would later run as the
   * user.
   */
  readonly writable?: readonly string[];
  readonly limits?: Partial<CommandLimits>;
  readonly settings?: SandboxSettings;
  /** Ends programs without a sandbox when this process is killed. `mark` identifies processes that left their group. */
  readonly guard?: ProgramGuard;
  onWarning?(message: string): void;
}

interface ProgramGuard {
  readonly mark: string;
  watchdog(): Promise<Watchdog>;
}

/** Returns the guard of a process. Its watchdog starts with the first program. */
export function programGuard(stateRoot: string): { readonly guard: ProgramGuard; stopGuard(): Promise<void> } {
  const mark = `program-${crypto.randomUUID()}`;
  let watchdog: Promise<Watchdog> | undefined;
  const start = async (): Promise<Watchdog> => {
    const { startWatchdog } = await import("../../tools/shell/process/watchdog.ts");
    // Programs hold no files of ours, so only the mark and the group identify them.
    return startWatchdog({ mark, folder: `/dev/null/${mark}`, records: join(stateRoot, "sandbox") });
  };
  return {
    guard: {
      mark,
      watchdog() {
        watchdog ??= start();
        return watchdog;
      },
    },
    stopGuard: async () => (await watchdog)?.close(),
  };
}

export function programPreparer(options: ProgramPreparerOptions): PrepareProgram {
  return async (request) => {
    const { commandLimits, limitedProgram } = await import("../../tools/shell/process/limits.ts");
    const limits = commandLimits(options.limits);
    const start = (prepared: PreparedSandbox): Pick<PreparedProgram, "program" | "arguments"> => {
      const launcher = prepared.kind === "sandboxed" ? prepared.launcher : [];
      const [program = "", ...rest] = [...launcher, ...limitedProgram(limits, prepared.kind === "sandboxed")];
      return { program, arguments: [...rest, request.program, ...request.arguments] };
    };
    if (request.scope === "user") return plain(request, start({ kind: "plain" }), options);
    const steering = Object.keys(request.environment).find(steersLauncher);
    if (steering !== undefined) {
      const message = `${request.program} of this project was not started: it sets ${steering}, which a project must not.`;
      throw new TroupeError("failed", message, { hint: "Remove the variable from its definition." });
    }
    const cache = await cacheFolder(options, rootsOf(request, options));
    const prepared = await enter(request, options, cache);
    if (prepared.kind === "plain") {
      const warning = prepared.warning && `${request.program} of this project: ${prepared.warning}`;
      if (warning !== undefined) options.onWarning?.(warning);
      return { ...(await plain(request, start(prepared), options)), ...defined({ warning }) };
    }
    const watchdog = await options.guard?.watchdog();
    const isUndone = watchdog?.keep(prepared.left);
    let group: number | undefined;
    return {
      ...start(prepared),
      environment: {
        ...request.environment,
        ...prepared.environment,
        XDG_CACHE_HOME: cache,
        npm_config_cache: join(cache, "npm"),
      },
      started(pid) {
        group = pid;
        watchdog?.watch(pid);
      },
      async release() {
        if (group !== undefined) watchdog?.unwatch(group);
        const undone = await prepared.release();
        isUndone?.();
        if (undone !== undefined) options.onWarning?.(undone);
      },
    };
  };
}

/**
 * Starts a program without a sandbox. The user's own hook may leave a process behind in its own session; a project's
 * may not.
 */
async function plain(
  request: ProgramRequest,
  start: Pick<PreparedProgram, "program" | "arguments">,
  { guard }: ProgramPreparerOptions,
): Promise<PreparedProgram> {
  const { environment, scope } = request;
  // A marked program is already watched by the code that marked it.
  if (guard === undefined || environment[MARK_NAME] !== undefined)
    return { ...start, environment, release: async () => undefined };
  const watchdog = await guard.watchdog();
  let group: number | undefined;
  return {
    ...start,
    environment: scope === "project" ? { ...environment, [MARK_NAME]: `${guard.mark}.1` } : environment,
    started(pid) {
      group = pid;
      watchdog.watch(pid);
    },
    async release() {
      if (group !== undefined) watchdog.unwatch(group);
    },
  };
}

async function enter(
  request: ProgramRequest,
  options: ProgramPreparerOptions,
  cache: string,
): Promise<PreparedSandbox> {
  // Only hosts approved with the definition: the hosts in the user's settings are for commands.
  const settings = { ...options.settings, allowedHosts: request.hosts };
  const sandbox = await options.sandboxes.get(false, settings);
  const { writable = [] } = options;
  const folders = { workspace: rootsOf(request, options), cwd: request.cwd };
  const sandboxRequest = {
    ...folders,
    ownTerminal: false,
    detached: false,
    writable: [cache, ...writable],
    readable: request.readable ?? [],
    ...defined({ onWarning: options.onWarning }),
  };
  return sandbox.prepare(sandboxRequest).catch((cause: unknown) => {
    if (!(cause instanceof Error) || cause.name !== "ToolError") throw cause;
    throw new TroupeError("failed", `${request.program} of this project was not started: ${cause.message}`, { cause });
  });
}

/** Programs shared by sessions have no workspace; then their working directory is used. */
const rootsOf = ({ cwd }: ProgramRequest, { workspace }: ProgramPreparerOptions): readonly string[] =>
  workspace.length > 0 ? workspace : [cwd];

/** Returns a cache folder per project, so that `npx` works but no project can plant what others or the user run. */
async function cacheFolder({ stateRoot, disk }: ProgramPreparerOptions, roots: readonly string[]): Promise<string> {
  const name = createHash("sha256").update(roots.join("\0")).digest("hex").slice(0, 16);
  const folder = join(stateRoot, "program-caches", name);
  await disk.mkdir(folder);
  return folder;
}
