/**
 * Runs a server as a child process. The library's own transport does not limit its input as we need and ends only the
 * first process. This one uses its own process group and environment, and leaves nothing running when it closes.
 */
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { isObject, parseJson } from "../../lib/json.ts";
import type { PreparedProgram } from "../../lib/node/program.ts";
import { endFamily, familyOf, type ProcessFamily } from "../shell/process/family.ts";
import type { Watchdog } from "../shell/process/watchdog.ts";
import { cleanLine } from "./bounds.ts";
import { lineReader } from "./line-reader.ts";

export interface StdioServer {
  readonly program: PreparedProgram;
  readonly cwd: string;
  readonly mark: string;
  readonly watchdog: Watchdog;
  /** The program may install a package before it answers. Until then it is not killed, but gets time to finish. */
  readonly mayInstall?: boolean;
}

const MAX_LINE_BYTES = 4 * 1024 * 1024;
const MAX_NOISE_BYTES = 1024 * 1024;
const MAX_STDERR_BYTES = 64 * 1024;
/** Limit for unsent data when a server does not read. */
const MAX_UNSENT_BYTES = 16 * 1024 * 1024;
/** Limit of unsolicited messages per window; more is a flood. */
const MAX_UNASKED = 5000;
const UNASKED_WINDOW_MS = 10_000;
const EOF_GRACE_MS = 300;
/**
 * A package runner that is killed during installation leaves a broken cache. On end of input it exits after the
 * installation.
 */
const INSTALL_GRACE_MS = 30_000;

export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];
  readonly #server: StdioServer;
  #child: ChildProcessWithoutNullStreams | undefined;
  #family: ProcessFamily | undefined;
  #errors = Buffer.alloc(0);
  #failure: string | undefined;
  #ending: Promise<void> | undefined;
  #unasked = { since: 0, count: 0 };
  #hasSpoken = false;
  #probeId: unknown;
  #isProbeAnswered = false;

  constructor(server: StdioServer) {
    this.#server = server;
  }

  /** Together with `stderr` it tells the library that this is a child process, which may ignore unknown requests. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get stderr(): string {
    return this.#errors.toString("utf8");
  }

  /** The reason why we closed it, if we did. */
  get failure(): string | undefined {
    return this.#failure;
  }

  get hasEnded(): boolean {
    return this.#ending !== undefined;
  }

  /** Returns true when the server has sent nothing yet and may be installing itself. */
  get isInstalling(): boolean {
    return this.#server.mayInstall === true && !this.#hasSpoken && this.#child?.exitCode === null;
  }

  /** Returns true when the server did not answer the version probe, not even with an error. */
  get ignoredProbe(): boolean {
    return this.#probeId !== undefined && !this.#isProbeAnswered;
  }

  async start(): Promise<void> {
    const { program, cwd, mark, watchdog } = this.#server;
    const { spawn } = await import("node:child_process");
    const child = spawn(program.program, [...program.arguments], {
      cwd,
      env: { ...program.environment },
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      windowsHide: true,
    });
    this.#child = child;
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    }).catch(async (cause: unknown) => {
      this.#ending = program.release();
      await this.#ending;
      throw cause;
    });
    child.on("error", () => undefined);
    const pid = child.pid ?? 0;
    this.#family = familyOf(pid, mark);
    watchdog.watch(pid);
    this.#read(child);
    child.once("exit", (code, signal) => {
      this.#failure ??= `it ended with ${signal ?? `exit code ${code}`}`;
      void this.close();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (stdin === undefined || this.hasEnded || !stdin.writable) throw new Error("the server has ended");
    if (stdin.writableLength > MAX_UNSENT_BYTES) {
      this.#giveUp("it does not read its input");
      throw new Error("the server does not read its input");
    }
    if ("method" in message && "id" in message && message.method === "server/discover") this.#probeId = message.id;
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Notifies waiting callers immediately. Resolves when every process has ended. */
  close(): Promise<void> {
    if (this.#ending === undefined) {
      this.#ending = this.#end();
      this.onclose?.();
    }
    return this.#ending;
  }

  async #end(): Promise<void> {
    const { program, watchdog } = this.#server;
    const child = this.#child;
    if (child !== undefined && this.#family !== undefined) {
      child.stdin.end();
      if (this.#failure === undefined) await exitOf(child, this.isInstalling ? INSTALL_GRACE_MS : EOF_GRACE_MS);
      await endFamily(this.#family);
      watchdog.unwatch(this.#family.pid);
      for (const stream of [child.stdout, child.stderr, child.stdin]) stream.destroy();
    }
    await program.release();
  }

  #read(child: ChildProcessWithoutNullStreams): void {
    const read = lineReader({
      maxLineBytes: MAX_LINE_BYTES,
      maxNoiseBytes: MAX_NOISE_BYTES,
      onLine: (line) => this.#take(line),
      onFailure: (reason) => this.#giveUp(reason),
    });
    child.stdout.on("data", (bytes: Buffer) => {
      if (!this.hasEnded) read(bytes);
    });
    child.stderr.on("data", (bytes: Buffer) => {
      this.#errors = Buffer.from(Buffer.concat([this.#errors, bytes]).subarray(-MAX_STDERR_BYTES));
    });
  }

  #take(line: string): boolean {
    // A quick check: calling a parser that throws for every line of a flood is slow.
    const parsed = line.startsWith("{") ? parseJson(line) : { ok: false as const };
    if (!parsed.ok || !isObject(parsed.value) || parsed.value.jsonrpc !== "2.0") return false;
    this.#hasSpoken = true;
    if (parsed.value.method === undefined && parsed.value.id === this.#probeId) this.#isProbeAnswered = true;
    if (this.hasEnded || (parsed.value.method !== undefined && this.#isFlood())) return true;
    try {
      this.onmessage?.(parsed.value as unknown as JSONRPCMessage);
    } catch (error) {
      this.#giveUp(`it sent a message that cannot be parsed: ${cleanLine(String(error))}`);
    }
    return true;
  }

  #isFlood(): boolean {
    const now = performance.now();
    if (now - this.#unasked.since > UNASKED_WINDOW_MS) this.#unasked = { since: now, count: 0 };
    if (++this.#unasked.count <= MAX_UNASKED) return false;
    this.#giveUp(`it sent more than ${MAX_UNASKED} unrequested messages`);
    return true;
  }

  #giveUp(reason: string): void {
    this.#failure ??= reason;
    this.onerror?.(new Error(reason));
    void this.close();
  }
}

/** Waits for a server that exits on end of input. */
async function exitOf(child: ChildProcessWithoutNullStreams, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const stop = new AbortController();
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await Promise.race([exited, delay(graceMs, undefined, { signal: stop.signal }).catch(() => undefined)]);
  stop.abort();
}
