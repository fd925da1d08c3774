/**
 * OpenTelemetry for whoever asked for it: traces and metrics of sessions, made from the events that everybody hears
 * (`session-trace`), kept in bounded memory (`outbox`, `metrics`) and told to a file or over OTLP. Nothing of this is
 * loaded otherwise, no session waits for it, and what goes wrong with it is a warning.
 */
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { fileExporter } from "./file-exporter.ts";
import { Meter } from "./metrics.ts";
import { otlpExporter } from "./otlp-exporter.ts";
import { Outbox } from "./outbox.ts";
import { SessionTrace } from "./session-trace.ts";
import type { TelemetrySettings } from "./settings.ts";
import { type NewId, randomId, type Source, type Span } from "./span.ts";

interface TelemetryOptions {
  readonly settings: TelemetrySettings;
  readonly version: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  /** Something is lost; for people, once for each receiver. */
  onTrouble(message: string): void;
  readonly newId?: NewId;
}

/** As much of a session as is needed to follow it. */
interface Followed {
  readonly id: string;
  subscribe(listener: (event: SessionEvent) => void): () => void;
}

export class Telemetry {
  readonly #options: TelemetryOptions;
  readonly #outboxes: readonly Outbox[];
  readonly #meter: Meter;
  readonly #traces = new Set<SessionTrace>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: TelemetryOptions) {
    this.#options = options;
    const { settings, disk, stamp, onTrouble } = options;
    const { file: path, otlp, spanDelayMs: delayMs, metricDelayMs } = settings;
    const source = sourceOf(options);
    this.#meter = new Meter(stamp.now());
    const exporters = [
      ...(path === undefined ? [] : [fileExporter({ path, disk, source })]),
      ...(otlp ? [otlpExporter({ settings: otlp, source, stamp })] : []),
    ];
    this.#outboxes = exporters.map((exporter) => new Outbox({ exporter, delayMs, onTrouble }));
    this.#timer = setInterval(() => void this.flush(), metricDelayMs).unref();
  }

  /** For a session to be: contexts are asked of it before the session itself is there to be followed. */
  traceOf(sessionId: string): SessionTrace {
    const { settings, newId = randomId } = this.#options;
    const { captureContent } = settings;
    const emit = (span: Span): void => this.#tell(span);
    return new SessionTrace({ sessionId, meter: this.#meter, newId, captureContent, emit });
  }

  follow(session: Followed, trace: SessionTrace): void {
    this.#traces.add(trace);
    session.subscribe((event) => trace.hear(event));
  }

  /** The session is over; what it said is sent while others go on. */
  ended(trace: SessionTrace): void {
    trace.close(this.#options.stamp.now());
    this.#traces.delete(trace);
    void this.flush();
  }

  async flush(): Promise<void> {
    const metrics = this.#meter.take(this.#options.stamp.now());
    if (metrics) for (const outbox of this.#outboxes) outbox.measure(metrics);
    await Promise.all(this.#outboxes.map((outbox) => outbox.flush()));
  }

  /** Whatever receivers do, it takes no longer. */
  async close(withinMs: number): Promise<void> {
    clearInterval(this.#timer);
    for (const trace of [...this.#traces]) this.ended(trace);
    await Promise.all(this.#outboxes.map((outbox) => outbox.close(withinMs)));
  }

  #tell(span: Span): void {
    if (!span.context.sampled) return;
    for (const outbox of this.#outboxes) outbox.add(span);
  }
}

function sourceOf({ settings, version }: TelemetryOptions): Source {
  const { scopeName: name, resource } = settings;
  const sdk = { "telemetry.sdk.name": "troupe", "telemetry.sdk.language": "nodejs", "telemetry.sdk.version": version };
  return { resource: { "service.version": version, ...sdk, ...resource }, scope: { name, version } };
}
