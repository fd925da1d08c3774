/** Exports sessions through OpenTelemetry if configured. Otherwise none of its code is loaded. */
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { TraceContext } from "../lib/trace-context.ts";
import type { TracePort } from "../session/run-settings.ts";
import type { Session } from "../session/session.ts";
import type { Reading } from "../telemetry/gauges.ts";
import { isTelemetryWanted, telemetrySettings } from "../telemetry/settings.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { version } from "./version.ts";

/** A process that is one of several with the same sessions. */
export interface MeasuredInstance {
  readonly id: string;
  /** Reads the gauges. Called before each export of metrics, and only if telemetry is on. */
  readings(): Promise<readonly Reading[]>;
}

interface TelemetryServiceParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly disk: Disk;
  readonly stamp: Stamp;
  addSecret(value: string, name: string): void;
  readonly instance?: MeasuredInstance | undefined;
}

/** Traces one session. */
export interface SessionTracer {
  readonly port: TracePort;
  started(session: Session): void;
  ended(): void;
}

export interface TelemetryService {
  /**
   * Returns undefined if telemetry is off. If its configuration is invalid, the first session gets a warning. `trace`:
   * the session's runs belong to it unless a message names another.
   */
  of(sessionId: string, trace?: TraceContext): Promise<SessionTracer | undefined>;
  /** Exports pending data of ended sessions, or gives up after a timeout. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Header values may be keys and are redacted. Shorter values are not keys and would match everywhere. */
const SHORTEST_KEY = 8;
/** Time limit for the final export. After a timeout, `close` waits only `AFTER_THAT_MS`. */
const LAST_MS = 2_000;
const AFTER_THAT_MS = 100;

export function telemetryService(parts: TelemetryServiceParts): TelemetryService {
  const { environment, stamp } = parts;
  const isWanted = isTelemetryWanted(environment);
  const open = new Set<Session>();
  /** Messages waiting for a session that can show them. */
  const troubles: string[] = [];
  let telemetry: Promise<Telemetry | undefined> | undefined;
  let lastMs = LAST_MS;

  const onTrouble = (message: string): void => {
    const [session] = open;
    if (session) session.record.warn("telemetry", message);
    else if (telemetry === undefined) troubles.push(message);
    else process.emitWarning(message, "TroupeTelemetry");
  };
  const onRefused = (reason: string): void => void troubles.push(`There is no telemetry: ${reason}.`);
  const load = (): Promise<Telemetry | undefined> => {
    telemetry ??= loadTelemetry(parts, { onTrouble, onRefused });
    return telemetry;
  };
  // Its gauges are exported while it has no session, too.
  if (isWanted && parts.instance) void load().catch(() => undefined);

  return {
    async of(sessionId, parent) {
      if (!isWanted) return undefined;
      const loaded = await load();
      const trace = loaded?.traceOf(sessionId, parent);
      let session: Session | undefined;
      return {
        port: trace ?? { expect: () => undefined, ofCall: () => undefined },
        started(made) {
          session = made;
          open.add(made);
          for (const message of troubles.splice(0)) made.record.warn("telemetry", message);
          if (trace) loaded?.follow(made, trace);
        },
        ended() {
          if (session) open.delete(session);
          if (trace) loaded?.ended(trace);
        },
      };
    },
    async flush() {
      const end = new AbortController();
      const loaded = await telemetry;
      const late = stamp.sleep(LAST_MS, end.signal).then(
        () => {
          lastMs = AFTER_THAT_MS;
        },
        () => undefined,
      );
      await Promise.race([loaded?.flush(), late]);
      end.abort();
    },
    async close() {
      await (await telemetry)?.close(lastMs);
    },
  };
}

/** Returns undefined if the settings of the environment cannot be used. */
async function loadTelemetry(
  { environment, disk, stamp, addSecret, instance }: TelemetryServiceParts,
  { onTrouble, onRefused }: Record<"onTrouble" | "onRefused", (message: string) => void>,
): Promise<Telemetry | undefined> {
  const settings = telemetrySettings(environment, process.cwd());
  if ("refused" in settings) {
    onRefused(settings.refused);
    return undefined;
  }
  for (const value of Object.values(settings.otlp?.headers ?? {})) {
    if (value.length >= SHORTEST_KEY) addSecret(value, "telemetry");
  }
  const { Telemetry: Loaded } = await import("../telemetry/telemetry.ts");
  return new Loaded({ settings, version, disk, stamp, onTrouble, instance });
}
