/**
 * Runs one command hook in its own process group: payload on stdin, answer on stdout. When the promise resolves, the
 * program and its group have ended. It does not wait for a grandchild that holds the output open.
 */
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { realpath, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { setImmediate as nextTask } from "node:timers/promises";
import { isInside } from "../lib/node/paths.ts";
import type { PreparedProgram, PrepareProgram } from "../lib/node/program.ts";
import { clip, sanitise } from "../lib/text.ts";
import { messageOf } from "./answer.ts";
import { expandShellText, expandTemplates, expandVariables, type HookEnvironment, hookEnvironment } from "./expand.ts";
import type { CommandRun, HookDefinition } from "./hooks.ts";
import { type HookProgress, type OutputReader, outputReader } from "./output-reader.ts";

export type CommandEnd =
  | { readonly kind: "exit"; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "killed"; readonly signal: string; readonly stderr: string }
  | { readonly kind: "stopped" }
  | { readonly kind: "too-much" }
  | { readonly kind: "not-started"; readonly message: string };

export interface HookCommandPorts extends HookEnvironment {
  readonly prepare: PrepareProgram;
  /** Aborts on timeout or cancellation; the caller knows which. */
  readonly signal: AbortSignal;
  onProgress(progress: HookProgress): void;
  /** Called when the program runs with less containment than it should. */
  onWarning(message: string): void;
}

type CommandDefinition = Pick<HookDefinition, "source"> & { readonly run: CommandRun };

/** Time between SIGTERM and SIGKILL. */
const GRACE_MS = 2_000;
const MAX_STDERR_BYTES = 4 * 1024;

export async function runCommand(
  definition: CommandDefinition,
  payload: string,
  ports: HookCommandPorts,
): Promise<CommandEnd> {
  let prepared: PreparedProgram;
  let cwd: string;
  try {
    cwd = await workingFolder(definition, ports);
    prepared = await ports.prepare({ ...request(definition, ports), cwd });
  } catch (error) {
    return { kind: "not-started", message: messageOf(error) };
  }
  if (prepared.warning !== undefined) ports.onWarning(prepared.warning);
  try {
    return await runPrepared(prepared, { cwd, payload, ports });
  } finally {
    await prepared.release();
  }
}

function request(definition: CommandDefinition, ports: HookCommandPorts) {
  const { run, source } = definition;
  const base = hookEnvironment(definition, ports);
  const own = Object.entries(run.env).map(([name, value]) => [
    name,
    expandVariables(expandTemplates(value, definition, ports), base),
  ]);
  const environment: Record<string, string> = { ...base, ...Object.fromEntries(own) };
  return {
    ...commandLine(definition, ports),
    environment,
    scope: source.owner,
    hosts: run.hosts ?? [],
  };
}

function commandLine(definition: CommandDefinition, ports: HookCommandPorts) {
  const { start } = definition.run;
  if (start.type === "program") {
    const expand = (word: string): string => expandTemplates(word, definition, ports);
    return { program: expand(start.program), arguments: start.arguments.map(expand) };
  }
  const text = expandShellText(start.text, definition, ports);
  // With a socket as stdin, bash assumes a remote login and would read ~/.bashrc.
  if (start.shell === "bash") return { program: "bash", arguments: ["--norc", "--noprofile", "-c", text] };
  return { program: "powershell", arguments: ["-NoProfile", "-NonInteractive", "-Command", text] };
}

/**
 * Resolves the working directory relative to the project. A hook of the user may use any absolute path. A hook of a
 * plugin may also use the plugin's folders. Throws for any other directory outside the project.
 */
async function workingFolder(definition: CommandDefinition, ports: HookCommandPorts): Promise<string> {
  const { source, run } = definition;
  if (run.cwd === undefined) return ports.projectRoot;
  const variables = hookEnvironment(definition, ports);
  const asked = expandVariables(expandTemplates(run.cwd, definition, ports), variables);
  const folder = await realpath(resolve(ports.projectRoot, asked)).catch(() => undefined);
  if (folder === undefined || !(await stat(folder)).isDirectory()) throw new Error(`there is no folder ${asked}`);
  const roots = [ports.projectRoot, ...(source.plugin ? [source.plugin.root, source.plugin.data] : [])];
  const real = await Promise.all(roots.map((root) => realpath(root).catch(() => root)));
  if (isInside(folder, real) || (source.owner === "user" && isAbsolute(asked))) return folder;
  throw new Error(`its cwd ${asked} is outside of the project`);
}

interface Start {
  readonly cwd: string;
  readonly payload: string;
  readonly ports: HookCommandPorts;
}

async function runPrepared(prepared: PreparedProgram, { cwd, payload, ports }: Start): Promise<CommandEnd> {
  if (ports.signal.aborted) return { kind: "stopped" };
  let child: ChildProcessWithoutNullStreams;
  try {
    child = await start(prepared, cwd);
  } catch (error) {
    return { kind: "not-started", message: messageOf(error) };
  }
  if (child.pid !== undefined) prepared.started?.(child.pid);
  const stderr = firstBytes(child.stderr);
  const stdout = outputReader(ports.onProgress);
  const group = new ProcessGroup(child);
  const stop = (): void => group.end();
  let tooMuch = false;
  child.stdout.on("data", (bytes: Buffer) => {
    if (tooMuch || stdout.push(bytes)) return;
    tooMuch = true;
    group.kill();
  });
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
  ports.signal.addEventListener("abort", stop, { once: true });
  child.stdin.end(payload);
  try {
    const end = await whenEnded(child);
    if (end.kind === "not-started") return end;
    await whenDrained();
    if (ports.signal.aborted) return { kind: "stopped" };
    if (tooMuch) return { kind: "too-much" };
    return withOutput(end, stdout, stderr());
  } finally {
    ports.signal.removeEventListener("abort", stop);
    group.kill();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  }
}

/** Some start failures are thrown here, others arrive as an `error` event. */
async function start({ program, arguments: words, environment }: PreparedProgram, cwd: string) {
  const { spawn } = await import("node:child_process");
  const env = { ...environment };
  return spawn(program, [...words], { cwd, env, detached: true, stdio: "pipe", windowsHide: true });
}

type End =
  | { readonly kind: "not-started"; readonly message: string }
  | { readonly kind: "ended"; readonly code: number | null; readonly signal: string | null };

function whenEnded(child: ChildProcessWithoutNullStreams): Promise<End> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ kind: "not-started", message: error.message }));
    child.once("exit", (code, signal) => resolve({ kind: "ended", code, signal }));
  });
}

function withOutput(
  { code, signal }: Extract<End, { kind: "ended" }>,
  stdout: OutputReader,
  stderr: string,
): CommandEnd {
  if (code === null) return { kind: "killed", signal: signal ?? "a signal", stderr };
  return { kind: "exit", code, stdout: stdout.text(), stderr };
}

/**
 * Waits until the output of an ended program has been read. It is in the pipes already and is read within a few turns
 * of the event loop. Waiting for the pipes to close would wait for every process that inherited them.
 */
async function whenDrained(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await nextTask();
}

function firstBytes(stream: NodeJS.ReadableStream): () => string {
  const pieces: Buffer[] = [];
  let size = 0;
  stream.on("data", (bytes: Buffer) => {
    if (size < MAX_STDERR_BYTES) pieces.push(bytes.subarray(0, MAX_STDERR_BYTES - size));
    size += bytes.length;
  });
  return () => clip(sanitise(Buffer.concat(pieces).toString("utf8")).trim(), MAX_STDERR_BYTES);
}

/** The program and all its descendants that stayed in its process group. */
class ProcessGroup {
  readonly #child: ChildProcessWithoutNullStreams;
  #timer: NodeJS.Timeout | undefined;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
  }

  /** Sends SIGTERM, then SIGKILL after the grace period. */
  end(): void {
    if (this.#timer !== undefined) return;
    this.#signal("SIGTERM");
    this.#timer = setTimeout(() => this.#signal("SIGKILL"), GRACE_MS);
  }

  /** Sends SIGKILL to the rest of the group. */
  kill(): void {
    clearTimeout(this.#timer);
    this.#signal("SIGKILL");
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(process.platform === "win32" ? pid : -pid, name);
    } catch {
      // The group has no processes left.
    }
  }
}
