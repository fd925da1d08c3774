import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { childEnvironment } from "../../lib/node/child-environment.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { ToolError } from "../tool-error.ts";
import { freshArguments, laterVariables, namedArguments } from "./process/driver.ts";
import { endLeftovers, familyOf, MARK_NAME } from "./process/family.ts";
import { commandLimits, guardProcesses, limitLines } from "./process/limits.ts";
import { OutputPipes } from "./process/output-pipe.ts";
import { filterDescriptor, type ProcessRequest, type ShellProcess, startProcess } from "./process/shell-process.ts";
import { hasTerminals } from "./process/terminal.ts";
import { WaitingLauncher } from "./process/waiting-launcher.ts";
import { guardFolderName, PROCESS_MARK, shareWatchdog, type Watchdog } from "./process/watchdog.ts";
import type { PreparedSandbox } from "./sandbox/sandbox.ts";
import { SANDBOX_BASH } from "./sandbox/sandbox-entry.ts";
import { type Command, Shell } from "./shell.ts";
import type { ShellRequest, ShellsOptions } from "./shells.ts";

/** Shared by all shells of a session. */
export interface ShellBase {
  readonly options: ShellsOptions;
  /** For pipes. Commands outside a sandbox hold it open, so that their processes can be found. */
  readonly folder: string;
  readonly pipes: OutputPipes;
  readonly watchdog: Watchdog;
  readonly launcher: WaitingLauncher;
  /** Call when every shell has ended. */
  close(): Promise<void>;
}

/** Keeps a reference to `options`: some of them are read again for each command. */
export async function openShellBase(options: ShellsOptions, mark: string, disk: Disk): Promise<ShellBase> {
  // Not in the records folder: commands can read that one, and could read the output of others from a pipe.
  const folder = join(dirname(options.folder), "pipes", guardFolderName(`-${mark}`));
  await disk.mkdir(options.folder);
  await disk.mkdir(folder);
  const watchdog = await shareWatchdog(options.sandbox.records);
  const pipes = new OutputPipes(folder);
  const launcher = new WaitingLauncher({ pipes, watchdog, mark: `${PROCESS_MARK}.${mark}` });
  const close = async (): Promise<void> => {
    await launcher.close();
    await pipes.close();
    await disk.remove(folder).catch(() => undefined);
    watchdog.release();
  };
  return { options, folder: realpathSync(folder), watchdog, pipes, launcher, close };
}

interface ShellStart {
  readonly base: ShellBase;
  readonly id: string;
  readonly kind: Shell["kind"];
  /** Marks all its processes. */
  readonly mark: string;
  readonly request: ShellRequest;
  readonly started: number;
  /** Adds the first command before the process runs, so that no output is lost. */
  firstCommand(shell: Shell): Command;
  /** Receives work that continues after the shell has ended. */
  onTidying(work: Promise<void>): void;
  onWarning(message: string): void;
}

/** Throws a `ToolError` when it must not or cannot be started. */
export async function startShell(
  start: ShellStart,
): Promise<{ shell: Shell; command: Command; prepared: PreparedSandbox }> {
  const { base, kind, request } = start;
  const terminal = request.mode === "async" && base.options.terminals !== false && (await hasTerminals());
  const gitMounts = await base.options.gitMounts?.();
  const prepared = await base.options.sandbox.prepare({
    ...sandboxRequest(request),
    ...defined({ gitMounts }),
    readable: [base.options.folder],
    ownTerminal: terminal,
    detached: false,
    onWarning: (message) => start.onWarning(message),
  });
  // Registered from before the start until everything is undone, because this process can be killed at any moment.
  const undone = prepared.kind === "sandboxed" ? base.watchdog.keep(prepared.left) : undefined;
  const limits = commandLimits(base.options.limits);
  let unguard = (): void => undefined;
  const shell: Shell = new Shell({
    id: start.id,
    kind,
    started: start.started,
    unsandboxed: request.unsandboxed ?? false,
    newMark: () => crypto.randomUUID(),
    release() {
      unguard();
      return release(shell, prepared, start).finally(() => undone?.());
    },
  });
  const command = start.firstCommand(shell);
  const { process, mark } = await startBash(start, prepared, { shell, terminal }).catch(async (cause: Error) => {
    if (prepared.kind === "sandboxed") await prepared.release();
    undone?.();
    throw new ToolError(`bash could not be started in ${request.cwd}: ${cause.message}`, { cause });
  });
  const family = familyOf(process.pid, mark);
  unguard = guardProcesses(family, limits, () => shell.note(`Ended: more than ${limits.processes} processes.`));
  shell.attach(process, family);
  return { shell, command, prepared };
}

/** Starts the process, or continues one that waits. Returns it with its mark. The watchdog watches it. */
async function startBash(
  { base, kind, request, mark }: ShellStart,
  prepared: PreparedSandbox,
  { shell, terminal }: { shell: Shell; terminal: boolean },
): Promise<{ process: ShellProcess; mark: string }> {
  const direct = !terminal && prepared.kind === "sandboxed" ? prepared.direct : undefined;
  const beginning = {
    guardFolder: prepared.kind === "plain" ? base.folder : "",
    first: (direct?.script ?? "") + bashLimits(base.options, prepared),
    bash: direct ? SANDBOX_BASH : "bash",
  };
  const environment = environmentOf(base.options, prepared, request);
  const input = kind === "named" || request.mode === "async";
  const onBytes = (bytes: Buffer): boolean => shell.onBytes(bytes);
  if (direct !== undefined && !input && existsSync(request.cwd)) {
    const [program = "", ...args] = direct.launcher(filterDescriptor(false)).slice(0, -1);
    const variables = laterVariables(request.command, beginning).flatMap((variable) => ["--setenv", ...variable]);
    const all = [...args, ...variables];
    const launch = { program, bash: beginning.bash, filter: direct.filter, environment };
    base.options.assertMayStart?.();
    const waiting = all.every(isWord) ? base.launcher.take(launch) : undefined;
    if (waiting) return { process: waiting.process.start(all, onBytes), mark: waiting.mark };
  }
  const bash =
    kind === "fresh"
      ? freshArguments(request.command, beginning)
      : namedArguments(terminal ? "terminal" : "pipe", beginning);
  const process = await startProcess({
    ...spawnedBy(prepared, { direct, kind, bash }),
    cwd: request.cwd,
    environment: { ...environment, [MARK_NAME]: mark },
    pipes: base.pipes,
    input,
    commands: kind === "named" && !terminal,
    terminal,
    assertMayStart: () => base.options.assertMayStart?.(),
    onBytes,
  });
  base.watchdog.watch(process.pid);
  return { process, mark };
}

/** The kernel accepts no longer text as one argument or variable. */
const MAX_WORD_BYTES = 120_000;

/** Returns false for a text that would end early in a list of arguments, or be refused. The ordinary start reports it. */
const isWord = (text: string): boolean => !text.includes("\0") && Buffer.byteLength(text) < MAX_WORD_BYTES;

type DirectLaunch = Extract<PreparedSandbox, { kind: "sandboxed" }>["direct"];

/** Returns the arguments of the process, and the filter to pass to it. */
function spawnedBy(
  prepared: PreparedSandbox,
  { direct, kind, bash }: { direct: DirectLaunch; kind: Shell["kind"]; bash: readonly string[] },
): Pick<ProcessRequest, "argv" | "filter"> {
  if (direct === undefined) return { argv: [...launcherOf(prepared), ...bash] };
  return { argv: [...direct.launcher(filterDescriptor(kind === "named")), ...bash], filter: direct.filter };
}

/** Ends processes that the shell left running; in a sandbox the kernel already ended them. */
async function release(shell: Shell, prepared: PreparedSandbox, start: ShellStart): Promise<void> {
  const { family } = shell;
  if (family === undefined) return;
  const tidy = async (): Promise<void> => {
    if (prepared.kind === "plain") await endLeftovers(family);
    start.base.watchdog.unwatch(family.pid);
  };
  start.onTidying(tidy());
  const undone = prepared.kind === "sandboxed" ? await prepared.release() : undefined;
  if (undone !== undefined) start.onWarning(undone);
}

/** Prevents pagers that wait for a key, prompts and history files. */
const QUIET = { PAGER: "cat", GIT_PAGER: "cat", MANPAGER: "cat", HISTFILE: "/dev/null", PS1: "", PROMPT_COMMAND: "" };

/** Returns the environment of a command, without its mark. */
export function environmentOf(
  { environment = process.env, additions }: ShellsOptions,
  prepared: PreparedSandbox,
  { variables }: Pick<ShellRequest, "variables">,
): Record<string, string> {
  return {
    ...QUIET,
    ...childEnvironment(environment, additions),
    ...variables,
    ...(prepared.kind === "sandboxed" ? prepared.environment : {}),
  };
}

interface SandboxRequest {
  readonly workspace: readonly string[];
  readonly cwd: string;
  readonly unsandboxed: boolean;
  readonly readOnlyWorkspace: boolean;
  readonly required: boolean;
}

export function sandboxRequest(request: ShellRequest): SandboxRequest {
  const { roots, cwd, unsandboxed = false, readOnly = false, confined: required = false } = request;
  const workspace = roots.length > 0 ? roots : [cwd];
  return { workspace, cwd, unsandboxed, readOnlyWorkspace: readOnly || required, required };
}

/** Returns the first lines of a bash that runs a command. */
export function bashLimits({ limits }: ShellsOptions, prepared: PreparedSandbox): string {
  return limitLines(commandLimits(limits), { shell: "bash", sandboxed: prepared.kind === "sandboxed" });
}

export function launcherOf(prepared: PreparedSandbox): readonly string[] {
  return prepared.kind === "sandboxed" ? prepared.launcher : [];
}
