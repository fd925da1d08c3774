/** The queue that writes events to a log in batches. */

import type { Disk } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { storageError } from "../storage-error.ts";
import { encodeLine, type RecordLink } from "./line.ts";
import type { Position } from "./repair.ts";

export interface WriterOptions {
  readonly disk: Pick<Disk, "write" | "sync" | "close">;
  readonly stamp: Stamp;
  /** The current end of the log. */
  readonly position: Position;
  /** Set when the log cannot be written yet. `repairAfterFailedWrite` clears it. */
  readonly failure: TroupeError | undefined;
  /** Prepares the log and opens it for appending. Throws if it does not end at `length`. */
  open(length: number): Promise<number>;
  /** Restores the log to its acknowledged content. */
  restore(known: Position): Promise<void>;
  readonly limits?: { readonly queueBytes?: number; readonly syncWithinMs?: number };
}

interface QueuedAppend {
  /** `undefined` to sync only. */
  readonly event: SessionEvent | undefined;
  readonly barrier: boolean;
  resolve(): void;
  reject(error: TroupeError): void;
}
interface Line extends Omit<QueuedAppend, "event"> {
  readonly bytes: Buffer;
  readonly link: RecordLink;
}

const BATCH_BYTES = 1024 * 1024;
/** From this size on, a write starts at once instead of at the end of the tick. */
const EAGER_BYTES = 64 * 1024;
const QUEUE_BYTES = 64 * 1024 * 1024;
const SYNC_WITHIN_MS = 50;
const nothing = Buffer.alloc(0);

/**
 * Group commit. Lines appended in one tick or during a write go to disk in one write, with one sync if one of them is a
 * barrier. Appends are acknowledged in the order of the calls. After a failure all appends fail until `repairAfterFailedWrite`.
 */
export class LogWriter {
  readonly #options: WriterOptions;
  readonly #queueLimit: number;
  readonly #ended = new AbortController();
  #known: Position;
  #encoded: RecordLink;
  #failure: TroupeError | undefined;
  #fd: number | undefined;
  #queue: Line[] = [];
  #queuedBytes = 0;
  /** Events not encoded yet because the queue is full. */
  #waiting: QueuedAppend[] = [];
  #working: Promise<void> | undefined;
  #scheduled: NodeJS.Immediate | undefined;
  #syncDue = false;
  /** True once a write was attempted since the log was opened. */
  #touched = false;
  #repairing: Promise<void> | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#queueLimit = options.limits?.queueBytes ?? QUEUE_BYTES;
    this.#known = options.position;
    this.#encoded = options.position.last;
    this.#failure = options.failure;
  }

  /** The end of the log. `undefined` while appends are pending or after a failure. */
  get position(): Position | undefined {
    const isSettled = this.#known.last.seq === this.#encoded.seq && this.#waiting.length === 0;
    return isSettled && !this.#failure ? this.#known : undefined;
  }

  async append(event: SessionEvent, barrier: boolean): Promise<void> {
    if (this.#ended.signal.aborted) throw closedError();
    await this.#submit(event, barrier);
  }

  /** Resolves when everything appended before is synced. Creates no file if nothing was appended. */
  async flush(): Promise<void> {
    const isIdle = this.#queue.length === 0 && !this.#working;
    if (isIdle && !this.#failure && this.#known.synced === this.#known.length) return;
    await this.#submit(undefined, true);
  }

  repairAfterFailedWrite(): Promise<void> {
    this.#repairing ??= this.#repairAfterFailedWrite().finally(() => {
      this.#repairing = undefined;
    });
    return this.#repairing;
  }

  /** Writes everything pending and closes the file. Throws if the write fails; the file is closed anyway. */
  async close(): Promise<void> {
    this.#ended.abort();
    await this.#repairing?.catch(() => undefined);
    try {
      if (!this.#failure) await this.flush();
    } finally {
      await this.#working;
      await this.#closeFile();
    }
  }

  #submit(event: SessionEvent | undefined, barrier: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure);
      const waiting = { event, barrier, resolve, reject };
      if (this.#waiting.length > 0 || this.#queuedBytes > this.#queueLimit) this.#waiting.push(waiting);
      else this.#enqueue(waiting);
      return this.#start();
    });
  }

  #enqueue({ event, ...waiting }: QueuedAppend): void {
    if (!event) {
      this.#queue.push({ bytes: nothing, link: this.#encoded, ...waiting });
      return;
    }
    try {
      const line = encodeLine(event, this.#encoded);
      this.#encoded = line.link;
      this.#queue.push({ ...line, ...waiting });
      this.#queuedBytes += line.bytes.length;
    } catch (error) {
      waiting.reject(storageError("encode the event", error));
    }
  }

  #start(): void {
    if (this.#working) return;
    if (this.#queuedBytes >= EAGER_BYTES) this.#work();
    else this.#scheduled ??= setImmediate(() => this.#work());
  }

  #work(): void {
    if (this.#scheduled) clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    this.#working ??= this.#drain().finally(() => {
      this.#working = undefined;
      if (this.#queue.length > 0) this.#start();
    });
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch();
      try {
        await this.#commit(batch);
      } catch (error) {
        this.#fail(storageError("write the session log", error), batch);
        return;
      }
      for (const line of batch) line.resolve();
      while (this.#waiting.length > 0 && this.#queuedBytes <= this.#queueLimit) {
        const next = this.#waiting.shift();
        if (next) this.#enqueue(next);
      }
    }
  }

  #takeBatch(): Line[] {
    let bytes = 0;
    let count = 0;
    for (const line of this.#queue) {
      if (count > 0 && bytes + line.bytes.length > BATCH_BYTES) break;
      bytes += line.bytes.length;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #commit(batch: readonly Line[]): Promise<void> {
    const { disk } = this.#options;
    this.#fd ??= await this.#options.open(this.#known.length);
    const bytes = Buffer.concat(batch.map((line) => line.bytes));
    this.#touched = true;
    if (bytes.length > 0) await disk.write(this.#fd, bytes);
    const length = this.#known.length + bytes.length;
    const isBarrier = batch.some((line) => line.barrier);
    if (isBarrier && length > this.#known.synced) await this.#syncFile(this.#fd);
    const last = batch.findLast((line) => line.bytes.length > 0);
    this.#known = {
      length,
      synced: isBarrier ? length : this.#known.synced,
      last: last?.link ?? this.#known.last,
      lastLine: last?.bytes.length ?? this.#known.lastLine,
      doubtful: false,
    };
    this.#queuedBytes -= bytes.length;
    if (!isBarrier) this.#syncSoon();
  }

  async #syncFile(fd: number): Promise<void> {
    try {
      await this.#options.disk.sync(fd);
    } catch (error) {
      this.#known = { ...this.#known, doubtful: true };
      throw error;
    }
  }

  /** Syncs lines without a barrier shortly after. A failure shows at the next append. */
  #syncSoon(): void {
    if (this.#syncDue) return;
    this.#syncDue = true;
    const within = this.#options.limits?.syncWithinMs ?? SYNC_WITHIN_MS;
    void this.#options.stamp
      .sleep(within / 2, this.#ended.signal)
      .then(() => {
        this.#syncDue = false;
        return this.#failure || this.#known.synced === this.#known.length ? undefined : this.flush();
      })
      .catch(() => {
        this.#syncDue = false;
      });
  }

  #fail(failure: TroupeError, batch: readonly Line[]): void {
    this.#failure = failure;
    const lost = [...batch, ...this.#queue, ...this.#waiting];
    this.#queue = [];
    this.#waiting = [];
    this.#queuedBytes = 0;
    for (const waiting of lost) waiting.reject(failure);
  }

  async #repairAfterFailedWrite(): Promise<void> {
    if (this.#ended.signal.aborted) throw closedError();
    if (!this.#failure) return;
    await this.#working;
    await this.#closeFile();
    try {
      if (this.#touched) await this.#options.restore(this.#known);
      this.#fd = await this.#options.open(this.#known.length);
      await this.#syncFile(this.#fd);
    } catch (error) {
      this.#failure = storageError("write the session log", error);
      throw this.#failure;
    }
    this.#known = { ...this.#known, synced: this.#known.length, doubtful: false };
    this.#encoded = this.#known.last;
    this.#failure = undefined;
  }

  async #closeFile(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await this.#options.disk.close(fd).catch(() => undefined);
  }
}

function closedError(): TroupeError {
  return new TroupeError("storage", "The session log is closed.", { hint: "Open the session again to continue." });
}
