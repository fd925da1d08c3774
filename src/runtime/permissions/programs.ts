/**
 * How hooks and MCP servers are started. What a person has configured runs as that person, with limits; what a project
 * asks for runs in the sandbox of shell commands: the workspace can be written, protected names cannot, credentials and
 * our own state cannot be seen, Unix sockets cannot be reached.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { steersLauncher } from "../../lib/node/child-environment.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { PreparedProgram, PrepareProgram, ProgramRequest } from "../../lib/node/program.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { MARK_NAME } from "../../tools/shell/process/family.ts";
import type { CommandLimits } from "../../tools/shell/process/limits.ts";
import type { Watchdog } from "../../tools/shell/process/watchdog.ts";
import type { Prepared } from "../../tools/shell/sandbox/sandbox.ts";
import type { SandboxSettings } from "./sandbox-settings.ts";
import type { SandboxSource } from "./shells.ts";

export interface ProgramPreparerOptions {
  readonly sandboxes: Pick<SandboxSource, "get">;
  /** Real paths that a project's programs may change. */
  readonly workspace: readonly string[];
  /** Where the caches of a project's programs are kept, each project apart. */
  readonly stateRoot: string;
  readonly disk: Disk;
  /**
   * Real paths that they may change too. No cache that the person uses: what a project puts there would run as the
   * person the next time.
   */
  readonly writable?: readonly string[];
  readonly limits?: Partial<CommandLimits>;
  readonly settings?: SandboxSettings;
  /** Ends what runs without a sandbox when we are killed; `mark` names what of it left its group. */
  readonly guard?: ProgramGuard;
  onWarning?(message: string): void;
}

interface ProgramGuard {
  readonly mark: string;
  watchdog(): Promise<Watchdog>;
}

/** One for a process; its watchdog runs from the first program on. */
export function programGuard(stateRoot: string): { readonly guard: ProgramGuard; stopGuard(): Promise<void> } {
  const mark = `program-${crypto.randomUUID()}`;
  let watchdog: Promise<Watchdog> | undefined;
  const start = async (): Promise<Watchdog> => {
    const { startWatchdog } = await import("../../tools/shell/process/watchdog.ts");
    // No program holds a file of ours; the mark and the group are all there is to go by.
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
    const start = (prepared: Prepared): Pick<PreparedProgram, "program" | "arguments"> => {
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
      return { ...(await plain(request, start(prepared), options)), ...(warning !== undefined && { warning }) };
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

/** A person's own hook may leave something behind on purpose, in a session of its own; a project's may not. */
async function plain(
  request: ProgramRequest,
  start: Pick<PreparedProgram, "program" | "arguments">,
  { guard }: ProgramPreparerOptions,
): Promise<PreparedProgram> {
  const { environment, scope } = request;
  // Whoever has marked it watches over it.
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

async function enter(request: ProgramRequest, options: ProgramPreparerOptions, cache: string): Promise<Prepared> {
  // Only what was approved with its definition: the hosts of the user's settings are meant for commands.
  const settings = { ...options.settings, allowedHosts: request.hosts };
  const sandbox = await options.sandboxes.get(false, settings);
  const { writable = [] } = options;
  const place = { workspace: rootsOf(request, options), cwd: request.cwd };
  const wish = {
    ...place,
    ownTerminal: false,
    detached: false,
    writable: [cache, ...writable],
    readable: request.readable ?? [],
    ...(options.onWarning && { onWarning: options.onWarning }),
  };
  return sandbox.prepare(wish).catch((cause: unknown) => {
    if (!(cause instanceof Error) || cause.name !== "ToolError") throw cause;
    throw new TroupeError("failed", `${request.program} of this project was not started: ${cause.message}`, { cause });
  });
}

/** Programs that are shared by sessions have no workspace of their own; then their folder is it. */
const rootsOf = ({ cwd }: ProgramRequest, { workspace }: ProgramPreparerOptions): readonly string[] =>
  workspace.length > 0 ? workspace : [cwd];

/** So that `npx` and its like work, and one project cannot prepare what another, or the person, will run. */
async function cacheFolder({ stateRoot, disk }: ProgramPreparerOptions, roots: readonly string[]): Promise<string> {
  const name = createHash("sha256").update(roots.join("\0")).digest("hex").slice(0, 16);
  const folder = join(stateRoot, "program-caches", name);
  await disk.mkdir(folder);
  return folder;
}
