/**
 * Telemetry settings: what is exported, and to which receiver. They are read only from the environment of the process.
 */

import { resolve } from "node:path";
import { defined } from "../lib/defined.ts";
import type { Attributes } from "./span.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface OtlpSettings {
  readonly protocol: "http/json" | "http/protobuf";
  readonly traces: string | undefined;
  readonly metrics: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface TelemetrySettings {
  /** A file that receives one JSON line for each span and metric. */
  readonly file?: string;
  readonly otlp?: OtlpSettings;
  readonly scopeName: string;
  readonly resource: Attributes;
  /** Whether prompts, answers, arguments and results are exported. */
  readonly captureContent: boolean;
  readonly spanDelayMs: number;
  readonly metricDelayMs: number;
}

/** `refused`: the reason why the requested settings cannot be used. */
export type TelemetrySettingsResult = { readonly refused: string } | TelemetrySettings;

/** Cheap, for every start: the rest of this folder is loaded only if it returns true. */
export function isTelemetryWanted(environment: Environment): boolean {
  const enabled = variableOf(environment, "TROUPE_OTEL_ENABLED");
  if (isFalse(enabled) || isTrue(environment.OTEL_SDK_DISABLED)) return false;
  return (
    isTrue(enabled) ||
    [variableOf(environment, "TROUPE_OTEL_FILE_EXPORTER_PATH"), ...endpoints(environment)].some(Boolean)
  );
}

export function telemetrySettings(environment: Environment, cwd: string): TelemetrySettingsResult {
  const type = variableOf(environment, "TROUPE_OTEL_EXPORTER_TYPE");
  if (type && type !== "file" && type !== "otlp-http") {
    return { refused: `the exporter type "${type}" is not known; use "otlp-http" or "file"` };
  }
  const path = variableOf(environment, "TROUPE_OTEL_FILE_EXPORTER_PATH");
  if (type === "file" && !path) return { refused: "no file is named; set TROUPE_OTEL_FILE_EXPORTER_PATH" };
  // Without a type, a named file and a configured receiver are both used. With neither, OTLP is used.
  const wantsOtlp = type ? type === "otlp-http" : !path || endpoints(environment).some(Boolean);
  const otlp = wantsOtlp ? otlpSettings(environment) : undefined;
  if (otlp && "refused" in otlp) return otlp;
  return {
    ...(path && type !== "otlp-http" && { file: resolve(cwd, path) }),
    ...defined({ otlp }),
    scopeName: variableOf(environment, "TROUPE_OTEL_SOURCE_NAME") || "troupe",
    resource: resourceOf(environment),
    captureContent: isTrue(environment.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT),
    spanDelayMs: milliseconds(environment.OTEL_BSP_SCHEDULE_DELAY, 5_000),
    metricDelayMs: milliseconds(environment.OTEL_METRIC_EXPORT_INTERVAL, 60_000),
  };
}

/** Clients of the protocol set the variables under its own prefix. */
function variableOf(environment: Environment, name: `TROUPE_OTEL_${string}`): string | undefined {
  return environment[name] || environment[name.replace("TROUPE_", "COPILOT_")] || undefined;
}

function endpoints(environment: Environment): (string | undefined)[] {
  return ["", "TRACES_", "METRICS_"].map((signal) => environment[`OTEL_EXPORTER_OTLP_${signal}ENDPOINT`]);
}

const DEFAULT_ENDPOINT = "http://localhost:4318";

function otlpSettings(environment: Environment): OtlpSettings | { readonly refused: string } {
  const protocol = environment.OTEL_EXPORTER_OTLP_PROTOCOL || "http/json";
  if (protocol !== "http/json" && protocol !== "http/protobuf") {
    const hint = 'set OTEL_EXPORTER_OTLP_PROTOCOL to "http/json" or "http/protobuf", and the endpoint to match';
    return { refused: `the protocol "${protocol}" is not supported; ${hint}` };
  }
  const [base = "", traces = "", metrics = ""] = endpoints(environment).map((value) => value ?? "");
  const below = (path: string): string => `${(base || DEFAULT_ENDPOINT).replace(/\/+$/, "")}/v1/${path}`;
  const addresses = {
    traces: environment.OTEL_TRACES_EXPORTER === "none" ? undefined : traces || below("traces"),
    metrics: environment.OTEL_METRICS_EXPORTER === "none" ? undefined : metrics || below("metrics"),
  };
  for (const address of Object.values(addresses)) {
    if (address !== undefined && !isHttp(address))
      return { refused: `"${withoutSignIn(address)}" is not an http or https address` };
  }
  return {
    protocol,
    ...addresses,
    headers: pairs(environment.OTEL_EXPORTER_OTLP_HEADERS),
    timeoutMs: milliseconds(environment.OTEL_EXPORTER_OTLP_TIMEOUT, 10_000),
  };
}

/** Removes credentials and query: the address is shown to users and stored with the session. */
const withoutSignIn = (address: string): string => address.replace(/[^/@]*@/, "…@").replace(/[?#].*$/s, "?…");

function isHttp(address: string): boolean {
  return URL.canParse(address) && ["http:", "https:"].includes(new URL(address).protocol);
}

function resourceOf(environment: Environment): Attributes {
  const given = pairs(environment.OTEL_RESOURCE_ATTRIBUTES);
  return { ...given, "service.name": environment.OTEL_SERVICE_NAME || given["service.name"] || "troupe" };
}

/** Parses "key=value,other=value" with percent-encoding. */
function pairs(text: string | undefined): Record<string, string> {
  const found: Record<string, string> = {};
  for (const pair of (text ?? "").split(",")) {
    const index = pair.indexOf("=");
    const name = pair.slice(0, index).trim();
    if (index > 0 && name !== "") found[name] = decodeOrKeep(pair.slice(index + 1).trim());
  }
  return found;
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function milliseconds(text: string | undefined, otherwise: number): number {
  const value = Number(text);
  return text !== undefined && Number.isFinite(value) && value > 0 ? Math.min(value, 3_600_000) : otherwise;
}

const isTrue = (value: string | undefined): boolean => value === "1" || value?.toLowerCase() === "true";
const isFalse = (value: string | undefined): boolean => value === "0" || value?.toLowerCase() === "false";
