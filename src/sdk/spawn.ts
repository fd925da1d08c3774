import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { defined } from "../lib/defined.ts";
import type { Connection, Transport } from "./transport.ts";

export interface SpawnOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory?: string;
  /** Arguments for the server beside `--headless --stdio`. */
  readonly flags: readonly string[];
}

/** How long a server may take to exit after its input is closed, before it is killed. */
const GRACE_MS = 5_000;
/** Number of characters of a server's stderr that are stored for errors. */
const STDERR_CHARACTERS = 4_000;

/** Starts a server that lives as long as this client. */
export function spawnServer(connection: Extract<Connection, { kind: "stdio" }>, options: SpawnOptions): Transport {
  const path = connection.path ?? fileURLToPath(new URL("../../bin/troupe.js", import.meta.url));
  const args = [...(connection.args ?? []), "--headless", "--no-auto-update", ...options.flags, "--stdio"];
  const [command, given] = path.endsWith(".js") ? [process.execPath, [path, ...args]] : [path, args];
  checkPlace(given[0] === path ? path : undefined, options.workingDirectory);
  const child = spawn(command, given, {
    ...defined({ cwd: options.workingDirectory }),
    env: { ...options.environment },
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  const lastStderr = collect(child);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`The server ${path} could not be started: ${error.message}`));
    child.once("close", (code, signal) => resolve(endText({ code, signal, said: lastStderr() })));
  });
  // A write fails if the server has exited, which `ended` reports.
  child.stdin.on("error", () => undefined);
  return {
    input: child.stdout,
    output: child.stdin,
    ended,
    isOwned: true,
    async close() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
      await ended;
      clearTimeout(timer);
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

/** Throws for a missing program or folder. Node's own errors for these are misleading. */
function checkPlace(program: string | undefined, folder: string | undefined): void {
  if (folder !== undefined && !existsSync(folder)) {
    throw new Error(`The server could not be started: the working directory ${folder} does not exist.`);
  }
  const file = program === undefined ? undefined : resolve(folder ?? ".", program);
  if (file !== undefined && !existsSync(file)) {
    throw new Error(`The server could not be started: there is no file ${file}.`);
  }
}

function collect(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(-STDERR_CHARACTERS);
  });
  return () => text.trim();
}

function endText(end: { code: number | null; signal: string | null; said: string }): string {
  const how = end.signal === null ? `with code ${end.code}` : `by ${end.signal}`;
  return end.said === "" ? `The server ended ${how}.` : `The server ended ${how}. Its last output:\n${end.said}`;
}
