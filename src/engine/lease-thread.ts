/**
 * The thread that renews a lease. A busy event loop of the main thread neither delays a renewal nor hides that the lease
 * has expired: both threads read the same memory, and when the lease expires, this one kills the commands that run.
 *
 * The functions are sent to the thread as source text. They must not reference anything outside themselves.
 */

/** Indexes into the shared memory, an array of 64-bit integers. Times are nanoseconds. */
export interface LeaseMemory {
  /** The lease is valid until this time of the monotonic clock. */
  readonly until: 0;
  /** The same by the clock that also counts while the machine is suspended. */
  readonly untilOutside: 1;
  /** Number of times that the lease was renewed after it had expired. */
  readonly lapses: 2;
  /** Last sign of life of the main thread, by the monotonic clock. */
  readonly lastSeen: 3;
}

export const leaseMemory: LeaseMemory = { until: 0, untilOutside: 1, lapses: 2, lastSeen: 3 };
export const LEASE_MEMORY_BYTES = 32;

export interface LeaseThreadData {
  readonly memory: SharedArrayBuffer;
  readonly indexes: LeaseMemory;
  /** Path of the module `pg`. */
  readonly driver: string;
  readonly url: string;
  readonly statement: string;
  /** Values of the statement. The one at `drainingIndex` says whether the worker drains. */
  readonly values: readonly unknown[];
  readonly drainingIndex: number;
  readonly leaseMs: number;
  /** The worker's own part of the lease. The rest is the time in which what runs ends. */
  readonly usableMs: number;
  /** Prefix of `/proc/<pid>/environ` entries of the commands to kill. */
  readonly mark: string | undefined;
}

export type LeaseOrder = { readonly kind: "renew"; readonly id: number; readonly draining: boolean };
export type LeaseReply =
  | { readonly id: number; readonly error?: string }
  /** The reason why renewals fail, or null when one was successful again. */
  | { readonly trouble: string | null };

/** Returns functions that read both clocks, in nanoseconds. */
export function leaseClocks(require: NodeJS.Require): { monotonic(): bigint; outside(): bigint } {
  const { readFileSync } = require("node:fs") as typeof import("node:fs");
  const uptime = (): bigint => {
    // Linux: the time since the start of the machine, also while it was suspended. Nobody can set it.
    const [seconds = "", hundredths = ""] = (readFileSync("/proc/uptime", "latin1").split(" ")[0] ?? "").split(".");
    return BigInt(seconds) * 1_000_000_000n + BigInt(hundredths.padEnd(2, "0")) * 10_000_000n;
  };
  let outside = uptime;
  try {
    uptime();
  } catch {
    outside = () => BigInt(Date.now()) * 1_000_000n;
  }
  return { monotonic: () => process.hrtime.bigint(), outside };
}

/** The text of the thread's program. */
export function leaseProgram(): string {
  const parts: Parts = { leaseClocks, leaseCells, commandKiller, renewalStatement };
  const source = Object.entries(parts).map(([name, part]) => `${name}: ${part.toString()}`);
  return `(${renewalThread.toString()})(require, {${source.join(",\n")}})`;
}

interface Parts {
  readonly leaseClocks: typeof leaseClocks;
  readonly leaseCells: typeof leaseCells;
  readonly commandKiller: typeof commandKiller;
  readonly renewalStatement: typeof renewalStatement;
}

interface Driver {
  Client: new (options: object) => Connection;
}

interface Connection {
  connect(): Promise<unknown>;
  query(text: string, values: readonly unknown[]): Promise<unknown>;
  on(event: "error", listener: () => void): void;
  connection: { stream: { destroy(): void } };
}

/** The main function of the thread. */
function renewalThread(require: NodeJS.Require, parts: Parts): void {
  const { parentPort, workerData } = require("node:worker_threads") as typeof import("node:worker_threads");
  const data = workerData as LeaseThreadData;
  const { leaseMs, usableMs } = data;
  const cells = parts.leaseCells(data, parts.leaseClocks(require));
  const send = parts.renewalStatement(require, data);
  const killCommands = parts.commandKiller(require, data.mark, cells.isValid);
  let isDraining = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isTroubled = false;

  const tell = (trouble: string | null): void => {
    if (isTroubled === (trouble !== null)) return;
    isTroubled = trouble !== null;
    parentPort?.postMessage({ trouble });
  };
  const renew = (): Promise<void> => {
    // Taken before the request: the server's time of expiry is never earlier than this.
    const sentAt = cells.now();
    running ??= send(isDraining)
      .then(() => cells.renewed(sentAt))
      .then(
        () => tell(null),
        (error: unknown) => {
          tell(error instanceof Error ? error.message : String(error));
          throw error;
        },
      )
      .finally(() => {
        running = undefined;
        schedule();
      });
    return running;
  };
  /** Wakes up for the next renewal and at the expiry. After a failure it tries again soon. */
  const schedule = (): void => {
    clearTimeout(timer);
    const leftMs = cells.leftMs();
    const dueMs = leftMs - usableMs + leaseMs / 3;
    const waitMs = dueMs > 0 ? dueMs : Math.min(Math.max(leftMs, 1), leaseMs / 10);
    timer = setTimeout(look, Math.max(1, Math.ceil(waitMs)));
  };
  /** A main thread that shows no sign of life for a lease loses it. */
  const look = (): void => {
    if (cells.hasExpired()) killCommands();
    const isDue = cells.leftMs() <= usableMs - leaseMs / 3;
    if (isDue && cells.silenceMs() < leaseMs && !running) renew().catch(() => undefined);
    schedule();
  };
  parentPort?.on("message", ({ id, draining }: LeaseOrder) => {
    isDraining = draining;
    const answer = (error?: unknown): void =>
      parentPort.postMessage({ id, ...(error !== undefined && { error: String(error) }) });
    // One that runs may have sent the old state.
    const next = running ? running.catch(() => undefined).then(renew) : renew();
    next.then(() => answer(), answer);
  });
}

/** Reads and writes the shared memory. */
function leaseCells({ memory, indexes, usableMs }: LeaseThreadData, clocks: ReturnType<typeof leaseClocks>) {
  const cells = new BigInt64Array(memory);
  const ns = (ms: number): bigint => BigInt(Math.round(ms * 1e6));
  const now = () => ({ monotonic: clocks.monotonic(), outside: clocks.outside() });
  const isValid = (): boolean =>
    clocks.monotonic() < Atomics.load(cells, indexes.until) &&
    clocks.outside() < Atomics.load(cells, indexes.untilOutside);
  const hasExpired = (): boolean => Atomics.load(cells, indexes.until) > 0n && !isValid();
  return {
    now,
    isValid,
    hasExpired,
    renewed({ monotonic, outside }: ReturnType<typeof now>): void {
      // First the lapse: whoever sees a valid lease sees the lapses before it.
      if (hasExpired()) Atomics.add(cells, indexes.lapses, 1n);
      Atomics.store(cells, indexes.untilOutside, outside + ns(usableMs));
      Atomics.store(cells, indexes.until, monotonic + ns(usableMs));
    },
    leftMs: (): number => Number(Atomics.load(cells, indexes.until) - clocks.monotonic()) / 1e6,
    silenceMs: (): number => Number(clocks.monotonic() - Atomics.load(cells, indexes.lastSeen)) / 1e6,
  };
}

/** Returns a function that renews the row, on a connection that is replaced after a failure. */
function renewalStatement(require: NodeJS.Require, data: LeaseThreadData): (isDraining: boolean) => Promise<void> {
  const { Client } = require(data.driver) as Driver;
  const queryMs = Math.max(data.leaseMs / 2, 200);
  let connection: Connection | undefined;
  const drop = (which: Connection): void => {
    if (connection === which) connection = undefined;
    which.connection.stream.destroy();
  };
  const connect = async (): Promise<Connection> => {
    const fresh = new Client({
      connectionString: data.url,
      application_name: "troupe lease",
      connectionTimeoutMillis: Math.max(queryMs, 1_000),
      query_timeout: queryMs,
      keepAlive: true,
    });
    fresh.on("error", () => drop(fresh));
    await fresh.connect().catch((error: unknown) => {
      drop(fresh);
      throw error;
    });
    return fresh;
  };
  return async (isDraining) => {
    connection ??= await connect();
    const used = connection;
    const values = data.values.map((value, index) => (index === data.drainingIndex ? isDraining : value));
    await used.query(data.statement, values).catch((error: unknown) => {
      drop(used);
      throw error;
    });
  };
}

/** Returns a function that kills marked commands until the lease is valid: those that run, and those just starting. */
function commandKiller(require: NodeJS.Require, mark: string | undefined, isValid: () => boolean): () => void {
  const { readdirSync, readFileSync } = require("node:fs") as typeof import("node:fs");
  const ROUNDS = 200;
  const ROUND_MS = 20;
  let isKilling = false;
  const isMarked = (name: string): boolean => {
    if (mark === undefined || !/^\d+$/.test(name) || Number(name) === process.pid) return false;
    try {
      const environment = readFileSync(`/proc/${name}/environ`, "latin1");
      return environment.startsWith(mark) || environment.includes(`\0${mark}`);
    } catch {
      return false;
    }
  };
  const kill = (name: string): void => {
    try {
      process.kill(Number(name), "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  const round = (left: number): void => {
    isKilling = left > 0 && !isValid();
    if (!isKilling) return;
    readdirSync("/proc").filter(isMarked).forEach(kill);
    setTimeout(round, ROUND_MS, left - 1);
  };
  return () => {
    if (mark !== undefined && process.platform === "linux" && !isKilling) round(ROUNDS);
  };
}
