import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Damage } from "./damage.ts";
import { type LockHolder, type LockResult, takeLock } from "./lock.ts";
import { noRecord } from "./log/line.ts";
import { type LogContent, readLog } from "./log/read-log.ts";
import { repairTail } from "./log/repair.ts";
import { SNAPSHOT_FILE, type SnapshotRules } from "./log/snapshot.ts";
import type { WriterOptions } from "./log/writer.ts";
import { errorCode } from "./storage-error.ts";

/** Of a session's folder, the part with records of the runtime: large outputs, assets, logs of commands. */
export const RECORDS = "records";

export interface LogPaths {
  readonly directory: string;
  readonly log: string;
  readonly summary: string;
  readonly snapshot: string;
  /** Written by the agent's commands and file tools too: see `lib/node/shared-folder.ts`. */
  readonly files: string;
  /** Written by this program alone. */
  readonly records: string;
}

export function logPaths(folder: string, sessionId: string): LogPaths {
  const directory = join(folder, sessionId);
  return {
    directory,
    log: join(directory, "events.jsonl"),
    summary: join(directory, "workspace.yaml"),
    snapshot: join(directory, SNAPSHOT_FILE),
    files: join(directory, "files"),
    records: join(directory, RECORDS),
  };
}

export interface LogContext extends LogPaths {
  readonly sessionId: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly pid: number;
  /** Names this log object in the lock. Not from the stamp, whose ids repeat from one test run to the next. */
  readonly token: string;
  readonly limits?: WriterOptions["limits"];
  readonly snapshots?: SnapshotRules;
}

/** The steps that lead to a log that can be written. Each is done once; after a failure the next call goes on there. */
export class LogAccess {
  readonly #context: LogContext;
  /** What was read when the log was opened. */
  readonly #content: LogContent;
  #lock: TakenLock | undefined;
  #entering: Promise<void> | undefined;
  #isRepaired = false;

  constructor(context: LogContext, content: LogContent, lock?: TakenLock) {
    this.#context = context;
    this.#content = content;
    this.#lock = lock;
  }

  /** The folder is there and the lock is ours. */
  async enter(): Promise<void> {
    this.#entering ??= this.#enter().finally(() => {
      this.#entering = undefined;
    });
    await this.#entering;
  }

  async repair(): Promise<Damage | undefined> {
    if (this.#isRepaired) return undefined;
    const { disk, directory, log } = this.#context;
    const lost = await repairTail({ disk, directory, path: log, content: await this.#currentContent() });
    this.#isRepaired = true;
    return lost;
  }

  /** The log, open for appending; it and the folders above it survive a power cut. */
  async open(expectedLength: number): Promise<number> {
    const { disk, directory, log } = this.#context;
    await this.enter();
    await this.repair();
    const fd = await disk.openAppend(log);
    try {
      if ((await stat(log)).size !== expectedLength) throw changed(log);
      for (const folder of [directory, dirname(directory), dirname(dirname(directory))]) {
        await disk.syncDirectory(folder);
      }
      return fd;
    } catch (error) {
      await disk.close(fd).catch(() => undefined);
      throw error;
    }
  }

  /** Throws when another process has taken the session over, because this one stood still for too long. */
  async requireLock(): Promise<void> {
    if (!this.#lock || (await this.#lock.isOurs())) return;
    this.#lock = undefined;
    throw new TroupeError("storage", `Session ${this.#context.sessionId} was taken over by another process.`, {
      hint: "This process stood still for too long. Open the session again.",
    });
  }

  async leave(): Promise<void> {
    await this.#entering?.catch(() => undefined);
    await this.#lock?.release().catch(() => undefined);
    this.#lock = undefined;
  }

  /** A lock taken only now protects nothing that another process wrote since the log was read. */
  async #enter(): Promise<void> {
    if (this.#lock) return;
    const { disk, directory, log } = this.#context;
    await disk.mkdir(directory);
    const lock = await takeLock(this.#context);
    if (lock.kind === "held") throw held(this.#context, lock.by);
    try {
      const now = await readIfThere(log);
      if (now.fileSize !== this.#content.fileSize || now.last.crc !== this.#content.last.crc) throw changed(log);
      this.#lock = lock;
    } catch (error) {
      await lock.release().catch(() => undefined);
      throw error;
    }
  }

  /** An earlier repair may have got some way before it failed. */
  async #currentContent(): Promise<LogContent> {
    if (this.#content.fileSize === 0) return emptyLog;
    const { size } = await stat(this.#context.log);
    return size === this.#content.fileSize ? this.#content : await readLog(this.#context.log);
  }
}

type TakenLock = Extract<LockResult, { kind: "taken" }>;

export const emptyLog: LogContent = {
  events: [],
  damage: [],
  last: noRecord,
  length: 0,
  fileSize: 0,
  lines: 0,
  refersBack: false,
  endsDamaged: false,
  tail: { kind: "clean" },
};

export async function readIfThere(path: string): Promise<LogContent> {
  try {
    return await readLog(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return emptyLog;
    throw error;
  }
}

export function held({ sessionId }: LogContext, by: LockHolder): TroupeError {
  return new TroupeError("storage", `Session ${sessionId} is in use by process ${by.pid} on ${by.host}.`, {
    hint: by.advice,
  });
}

function changed(log: string): TroupeError {
  return new TroupeError("storage", `${log} was changed by another program.`, {
    hint: "Open the session again; what is in the file will be checked and used.",
  });
}
