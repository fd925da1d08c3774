/**
 * Starts the process of a shell, on pipes or in its own terminal, and reports its end. This folder contains everything
 * about those processes: start, limits, output and clean-up.
 */
import type { ChildProcess } from "node:child_process";
import * as fs from "node:fs";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { familyOf } from "./family.ts";
import type { OutputPipe, OutputPipes } from "./output-pipe.ts";
import { openTerminal } from "./terminal.ts";

export interface ProcessRequest {
  readonly argv: readonly string[];
  /** A file to pass to the process on the descriptor of `filterDescriptor`. Not for a terminal. */
  readonly filter?: string;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly pipes: OutputPipes;
  /** True when it accepts input; a terminal requires it. */
  readonly input: boolean;
  /** True to open descriptor 3 of the process, for `send`. */
  readonly commands: boolean;
  readonly terminal: boolean;
  /** Throws if it may not start any more. */
  assertMayStart?(): void;
  /** The bytes are only valid during the call; `false` pauses reading until `resume`. */
  onBytes(bytes: Buffer): boolean;
}

export interface ShellProcess {
  readonly pid: number;
  readonly terminal: boolean;
  /** Resolves with the exit code when the process has ended and its output is read, at most a second after its end. */
  readonly exited: Promise<number>;
  /** Undefined when it accepts no input. */
  readonly type: ((text: string) => void) | undefined;
  endInput(): void;
  send(message: string): void;
  resume(): void;
}

const SIGNAL_BASE = 128;
const NOT_STARTED = 126;
/** Time to wait for the pipe: a grandchild that holds it open must not delay the result. */
const PIPE_GRACE_MS = 500;

/** The descriptor after stdin, stdout, stderr and, if there is one, the pipe for commands. */
export const filterDescriptor = (commands: boolean): number => (commands ? 4 : 3);

/** The descriptor on which a waiting process reads its arguments. */
const ARGUMENTS_DESCRIPTOR = 4;

export function startProcess(request: ProcessRequest): Promise<ShellProcess> {
  return request.terminal ? terminalProcess(request) : pipedProcess(request);
}

async function terminalProcess(request: ProcessRequest): Promise<ShellProcess> {
  let pause: () => void = () => undefined;
  request.assertMayStart?.();
  const terminal = await openTerminal({
    argv: request.argv,
    cwd: request.cwd,
    environment: request.environment,
    onBytes: (bytes) => {
      if (!request.onBytes(bytes)) pause();
    },
  });
  pause = () => terminal.pause();
  return {
    pid: terminal.pid,
    terminal: true,
    exited: terminal.exited,
    type: (text) => terminal.write(text),
    endInput: () => terminal.write("\u0004"),
    send: (message) => terminal.write(message),
    resume: () => terminal.resume(),
  };
}

async function pipedProcess(request: ProcessRequest): Promise<ShellProcess> {
  const { spawn } = await import("node:child_process");
  const pipe = await request.pipes.open();
  const [file = "", ...rest] = request.argv;
  const filter = request.filter === undefined ? undefined : fs.openSync(request.filter, "r");
  try {
    request.assertMayStart?.();
    const child = spawn(file, rest, {
      cwd: request.cwd,
      env: { ...request.environment },
      stdio: [
        request.input ? "pipe" : "ignore",
        pipe.writeFd,
        pipe.writeFd,
        ...(request.commands ? ["pipe" as const] : []),
        ...(filter === undefined ? [] : [filter]),
      ],
      // Its own process group and session: one signal reaches all of it, and it has no controlling terminal.
      detached: true,
    });
    const pid = await whenStarted(child);
    pipe.read(request.onBytes);
    return processWithPipe(child, pid, pipe);
  } catch (error) {
    pipe.destroy();
    throw error;
  } finally {
    fs.closeSync(pipe.writeFd);
    if (filter !== undefined) fs.closeSync(filter);
  }
}

/** A bubblewrap that has started and waits for its arguments. Until they arrive it has made no namespace and no mount. */
export interface WaitingProcess {
  readonly pid: number;
  isAlive(): boolean;
  /** Continues as a process that accepts no input. No argument may contain a null character. */
  start(args: readonly string[], onBytes: ProcessRequest["onBytes"]): ShellProcess;
  end(): void;
}

/** The filter is on the descriptor of `filterDescriptor`. `command`: what it runs, without its variables. */
export async function waitingProcess(request: {
  readonly program: string;
  readonly command: readonly string[];
  readonly filter: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly pipes: OutputPipes;
}): Promise<WaitingProcess> {
  const { spawn } = await import("node:child_process");
  const pipe = await request.pipes.open();
  const filter = fs.openSync(request.filter, "r");
  try {
    const child = spawn(request.program, ["--args", String(ARGUMENTS_DESCRIPTOR), "--", ...request.command], {
      cwd: "/",
      env: { ...request.environment },
      stdio: ["ignore", pipe.writeFd, pipe.writeFd, filter, "pipe"],
      detached: true,
    });
    const pid = await whenStarted(child);
    child.unref();
    return waiting(child, pid, pipe);
  } catch (error) {
    pipe.destroy();
    throw error;
  } finally {
    fs.closeSync(pipe.writeFd);
    fs.closeSync(filter);
  }
}

function waiting(child: ChildProcess, pid: number, pipe: OutputPipe): WaitingProcess {
  const rest = child.stdio[ARGUMENTS_DESCRIPTOR];
  child.on("error", () => undefined);
  rest?.on("error", () => undefined);
  if (rest && "unref" in rest && typeof rest.unref === "function") rest.unref();
  // The end of a process is known here a moment after it. `since` is 0 for one that has ended.
  const isAlive = (): boolean => child.exitCode === null && child.signalCode === null && familyOf(pid, "").since > 0;
  return {
    pid,
    isAlive,
    start(args, onBytes) {
      child.ref();
      pipe.read(onBytes);
      const process = processWithPipe(child, pid, pipe);
      if (rest && "end" in rest) rest.end(args.map((word) => `${word}\0`).join(""));
      return process;
    },
    end() {
      if (isAlive()) child.kill("SIGKILL");
      pipe.destroy();
    },
  };
}

function processWithPipe(child: ChildProcess, pid: number, pipe: OutputPipe): ShellProcess {
  const commands = child.stdio[3];
  for (const stream of [child.stdin, commands]) stream?.on("error", () => undefined);
  const { stdin } = child;
  return {
    pid,
    terminal: false,
    exited: exitOf(child, pipe),
    type: stdin ? (text) => void stdin.write(text) : undefined,
    endInput: () => void stdin?.end(),
    send(message) {
      if (commands && "write" in commands) commands.write(message);
    },
    resume: () => pipe.resume(),
  };
}

function whenStarted(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("spawn", () => resolve(child.pid ?? 0));
    child.once("error", reject);
  });
}

async function exitOf(child: ChildProcess, pipe: OutputPipe): Promise<number> {
  const code = await new Promise<number>((resolve) => {
    child.once("exit", (exitCode, signal) => {
      resolve(signal === null ? (exitCode ?? NOT_STARTED) : SIGNAL_BASE + (constants.signals[signal] ?? 0));
    });
  });
  const stop = new AbortController();
  await Promise.race([pipe.ended, delay(PIPE_GRACE_MS, undefined, { signal: stop.signal }).catch(() => undefined)]);
  stop.abort();
  pipe.destroy();
  return code;
}
