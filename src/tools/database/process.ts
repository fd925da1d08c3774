/** The process that runs SQL. It starts on demand, ends when idle, and is killed when it does not answer. */
import type { ChildProcess } from "node:child_process";
import { ToolError } from "../tool-error.ts";
import type { DatabaseReply, DatabaseRequest } from "./messages.ts";
import { databaseProgram } from "./program.ts";

export interface DatabaseProcess {
  /** Runs requests one at a time in call order. Each has the full timeout. */
  ask(request: DatabaseRequest, signal?: AbortSignal): Promise<DatabaseReply>;
  close(): Promise<void>;
}

export interface DatabaseProcessOptions {
  readonly timeoutMs: number;
  /** Undefined for an in-memory database, which would be lost when the process ends. */
  readonly idleMs: number | undefined;
  readonly maxWaiting: number;
}

/** On a busy machine the process needs longer to start than a query may take. */
const START_MS = 30_000;

export function databaseProcess({ timeoutMs, idleMs, maxWaiting }: DatabaseProcessOptions): DatabaseProcess {
  let child: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let isClosed = false;

  function stop(): void {
    clearTimeout(idle);
    child?.kill("SIGKILL");
    child = undefined;
  }

  async function begin(signal: AbortSignal | undefined): Promise<ChildProcess> {
    const started = await start();
    child = started;
    started.once("exit", () => {
      if (child === started) child = undefined;
    });
    await exchange(started, undefined, { timeoutMs: START_MS, signal });
    return started;
  }

  async function askNow(request: DatabaseRequest, signal: AbortSignal | undefined): Promise<DatabaseReply> {
    signal?.throwIfAborted();
    if (isClosed) throw new ToolError("The database of this session is closed.");
    clearTimeout(idle);
    try {
      return await exchange(child ?? (await begin(signal)), request, { timeoutMs, signal });
    } catch (error) {
      stop();
      throw error;
    } finally {
      if (idleMs !== undefined) idle = setTimeout(stop, idleMs).unref();
    }
  }

  return {
    async ask(request, signal) {
      if (waiting >= maxWaiting) throw new ToolError("Too many queries at once; wait for the others to end.");
      waiting++;
      const turn = last.then(() => askNow(request, signal));
      last = turn.catch(() => undefined);
      return turn.finally(() => waiting--);
    },
    async close() {
      isClosed = true;
      stop();
      await last;
    },
  };
}

/** Starts the process without troupe's environment, which contains keys. It does not keep troupe alive. */
async function start(): Promise<ChildProcess> {
  const [{ spawn }, { createRequire }] = await Promise.all([import("node:child_process"), import("node:module")]);
  const sqlite = createRequire(import.meta.url).resolve("@photostructure/sqlite");
  const { SystemRoot } = process.env; // Windows cannot start a process without it
  const child = spawn(process.execPath, ["-e", databaseProgram(sqlite)], {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    env: SystemRoot === undefined ? {} : { SystemRoot },
    serialization: "advanced",
    windowsHide: true,
  });
  child.unref();
  child.channel?.unref();
  child.on("error", () => undefined); // exchange() reports the error
  return child;
}

interface Exchange {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Without a request, waits until the process has started. */
function exchange(
  child: ChildProcess,
  request: DatabaseRequest | undefined,
  { timeoutMs, signal }: Exchange,
): Promise<DatabaseReply> {
  return new Promise<DatabaseReply>((resolve, reject) => {
    const finish = (end: () => void): void => {
      clearTimeout(timer);
      child.off("message", onMessage).off("exit", onExit);
      signal?.removeEventListener("abort", onAbort);
      end();
    };
    const onMessage = (reply: unknown): void => finish(() => resolve(reply as DatabaseReply));
    const onExit = (): void => finish(() => reject(new ToolError("The database process ended before it answered.")));
    const onAbort = (): void => finish(() => reject(signal?.reason));
    const late = request ? tooSlow(timeoutMs) : new ToolError("The database process did not start in time.");
    const timer = setTimeout(() => finish(() => reject(late)), timeoutMs);
    child.on("message", onMessage).on("exit", onExit);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (!request) return;
    child.send(request, (error) => {
      if (error) finish(() => reject(new ToolError(`The query could not be sent to the database: ${error.message}.`)));
    });
  });
}

function tooSlow(timeoutMs: number): ToolError {
  const remedy = "Uncommitted changes were rolled back. Narrow the query, or check it for endless recursion.";
  return new ToolError(`The query took longer than ${timeoutMs / 1000} s and was stopped. ${remedy}`, {
    code: "timeout",
  });
}
