/**
 * The telemetry folder: OpenTelemetry traces and metrics of sessions, for users who enabled it. They are made from
 * session events (`session-trace`), held in bounded memory (`outbox`, `metrics`) and exported to a file or over OTLP.
 * The folder is not loaded otherwise. No session waits for it, and its failures are warnings.
 */
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import { readTraceContext, type TraceContext } from "../lib/trace-context.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { fileExporter } from "./file-exporter.ts";
import type { Reading } from "./gauges.ts";
import { MetricMeter } from "./metrics.ts";
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
  /** Called when data was lost, once for each receiver. */
  onTrouble(message: string): void;
  readonly newId?: NewId;
  /** A process that is one of several with the same sessions, and the gauges that it reads before each export. */
  readonly instance?: { readonly id: string; readings(): Promise<readonly Reading[]> } | undefined;
}

/** The part of a session that is needed to follow it. */
interface Followed {
  readonly id: string;
  subscribe(listener: (event: SessionEvent) => void): () => void;
}

export class Telemetry {
  readonly #options: TelemetryOptions;
  readonly #outboxes: readonly Outbox[];
  readonly #meter: MetricMeter;
  readonly #traces = new Set<SessionTrace>();
  readonly #timer: NodeJS.Timeout;
  #isReading = false;

  constructor(options: TelemetryOptions) {
    this.#options = options;
    const { settings, disk, stamp, onTrouble } = options;
    const { file: path, otlp, spanDelayMs: delayMs, metricDelayMs } = settings;
    const source = sourceOf(options);
    this.#meter = new MetricMeter(stamp.now());
    const exporters = [
      ...(path === undefined ? [] : [fileExporter({ path, disk, source })]),
      ...(otlp ? [otlpExporter({ settings: otlp, source, stamp })] : []),
    ];
    this.#outboxes = exporters.map((exporter) => new Outbox({ exporter, delayMs, onTrouble }));
    this.#timer = setInterval(() => void this.#read().then(() => this.flush()), metricDelayMs).unref();
  }

  /** Creates the trace of a session. Its contexts are needed before the session exists. */
  traceOf(sessionId: string, parent?: TraceContext): SessionTrace {
    const { settings, newId = randomId } = this.#options;
    const { captureContent } = settings;
    const emit = (span: Span): void => this.#tell(span);
    return new SessionTrace(
      { sessionId, meter: this.#meter, newId, captureContent, emit },
      parent && readTraceContext(parent),
    );
  }

  follow(session: Followed, trace: SessionTrace): void {
    this.#traces.add(trace);
    session.subscribe((event) => trace.onEvent(event));
  }

  /** Ends the trace of a session and exports its data while other sessions continue. */
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

  /** Returns within this time, also if receivers do not respond. */
  async close(withinMs: number): Promise<void> {
    clearInterval(this.#timer);
    for (const trace of [...this.#traces]) this.ended(trace);
    await Promise.all(this.#outboxes.map((outbox) => outbox.close(withinMs)));
  }

  /** Gauges that cannot be read are left out. */
  async #read(): Promise<void> {
    const { instance } = this.#options;
    if (!instance || this.#isReading) return;
    this.#isReading = true;
    this.#meter.show(await instance.readings().catch(() => []));
    this.#isReading = false;
  }

  #tell(span: Span): void {
    if (!span.context.sampled) return;
    for (const outbox of this.#outboxes) outbox.add(span);
  }
}

function sourceOf({ settings, version, instance }: TelemetryOptions): Source {
  const { scopeName: name, resource } = settings;
  const sdk = { "telemetry.sdk.name": "troupe", "telemetry.sdk.language": "nodejs", "telemetry.sdk.version": version };
  const own = instance && { "service.instance.id": instance.id };
  return { resource: { "service.version": version, ...sdk, ...own, ...resource }, scope: { name, version } };
}
