/**
 * The export queue of one receiver. It never blocks callers and never exceeds its bounds. Items that do not fit, and
 * items that the receiver refuses, are dropped, counted and reported once.
 */
import { untilAborted } from "../lib/until-aborted.ts";
import type { Metric } from "./metrics.ts";
import { type Span, sizeOf } from "./span.ts";

export interface Exporter {
  /** The name shown to users. */
  readonly name: string;
  /** Rejects if the export failed. Retries are up to the exporter. */
  spans(spans: readonly Span[], signal: AbortSignal): Promise<void>;
  metrics(metrics: readonly Metric[], signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

interface OutboxOptions {
  readonly exporter: Exporter;
  readonly delayMs: number;
  /** Called once when data was lost. */
  onTrouble(message: string): void;
}

const MAX_SPANS = 2_048;
const MAX_CHARACTERS = 8 * 1024 * 1024;
const BATCH = 512;

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #stop = new AbortController();
  #waiting: Span[] = [];
  #size = 0;
  #metrics: readonly Metric[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();
  #dropped = 0;
  #isTroubled = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  get dropped(): number {
    return this.#dropped;
  }

  add(span: Span): void {
    const size = sizeOf(span);
    if (this.#waiting.length >= MAX_SPANS || this.#size + size > MAX_CHARACTERS) {
      this.#drop(1, "events arrive faster than they can be sent");
      return;
    }
    this.#waiting.push(span);
    this.#size += size;
    if (this.#waiting.length >= BATCH) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), this.#options.delayMs).unref();
  }

  /** Replaces earlier metrics: newer values include them. */
  measure(metrics: readonly Metric[]): void {
    this.#metrics = metrics;
  }

  /** Resolves when everything queued now was exported or dropped. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#sending.then(() => this.#send());
    return this.#sending;
  }

  /** Exports the rest. Data that is not exported within the time is lost. */
  async close(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.#stop.abort(), withinMs);
    await this.flush();
    clearTimeout(timer);
    await this.#options.exporter.close().catch(() => undefined);
  }

  async #send(): Promise<void> {
    const { exporter } = this.#options;
    const { signal } = this.#stop;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH);
      for (const span of batch) this.#size -= sizeOf(span);
      await this.#tell(batch.length, () => exporter.spans(batch, signal));
    }
    const metrics = this.#metrics;
    this.#metrics = undefined;
    if (metrics) await this.#tell(0, () => exporter.metrics(metrics, signal));
  }

  async #tell(count: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    const late = (): string => "the process ended before it was sent";
    const problem = signal.aborted ? late() : await untilAborted(work().then(undefined, messageOf), signal, late);
    if (typeof problem === "string") this.#drop(count, problem);
  }

  #drop(count: number, why: string): void {
    this.#dropped += count;
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    this.#options.onTrouble(`Telemetry to ${this.#options.exporter.name} is being lost: ${why}.`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
