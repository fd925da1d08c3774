/**
 * Exports to a receiver over HTTP. Temporary failures are retried a few times, within bounds. Redirects are not
 * followed.
 */
import type { IncomingMessage } from "node:http";
import type { Stamp } from "../lib/stamp.ts";
import { metricRequest, traceRequest } from "./otlp-json.ts";
import { protobuf } from "./otlp-protobuf.ts";
import type { Exporter } from "./outbox.ts";
import type { OtlpSettings } from "./settings.ts";
import type { Source } from "./span.ts";

interface OtlpOptions {
  readonly settings: OtlpSettings;
  readonly source: Source;
  readonly stamp: Pick<Stamp, "sleep">;
}

const ATTEMPTS = 3;
const PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const PASSING: readonly number[] = [429, 502, 503, 504];

export function otlpExporter({ settings, source, stamp }: OtlpOptions): Exporter {
  const { traces, metrics, protocol } = settings;
  const encode = (request: object): Buffer =>
    protocol === "http/json" ? Buffer.from(JSON.stringify(request)) : protobuf(request);
  const tell = async (address: string | undefined, request: () => object, signal: AbortSignal): Promise<void> => {
    if (address !== undefined) await insist(address, encode(request()), { settings, stamp, signal });
  };
  return {
    name: new URL(traces ?? metrics ?? "http://localhost").origin,
    spans: (spans, signal) => tell(traces, () => traceRequest(spans, source), signal),
    metrics: (all, signal) => tell(metrics, () => metricRequest(all, source), signal),
    close: async () => undefined,
  };
}

interface PostOptions extends Omit<OtlpOptions, "source"> {
  readonly signal: AbortSignal;
}

async function insist(address: string, body: Buffer, options: PostOptions): Promise<void> {
  const { stamp, signal } = options;
  for (let attempt = 1; ; attempt++) {
    const end = await post(address, body, options).catch((error: Error) => ({ problem: error.message, pauseMs: 0 }));
    if (!end) return;
    const isLast = attempt === ATTEMPTS || end.pauseMs === undefined || signal.aborted;
    if (isLast) throw new Error(end.problem);
    await stamp.sleep(Math.max(end.pauseMs ?? 0, PAUSE_MS * 2 ** (attempt - 1)), signal);
  }
}

/** Returns undefined if the receiver accepted it. A failure without a pause must not be retried. */
async function post(
  address: string,
  body: Buffer,
  { settings, signal }: PostOptions,
): Promise<{ readonly problem: string; readonly pauseMs: number | undefined } | undefined> {
  const url = new URL(address);
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const end = AbortSignal.any([signal, AbortSignal.timeout(settings.timeoutMs)]);
  const headers = {
    ...settings.headers,
    "content-type": settings.protocol === "http/json" ? "application/json" : "application/x-protobuf",
    "content-length": body.length,
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { method: "POST", headers, signal: end }, resolve);
    sent.once("error", reject);
    sent.end(body);
  });
  response.resume(); // the response body is not used
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return undefined;
  const problem = `it answered with status ${status}`;
  return { problem, pauseMs: PASSING.includes(status) ? retryAfterMs(response) : undefined };
}

function retryAfterMs({ headers }: IncomingMessage): number {
  const wanted = Number(headers["retry-after"]) * 1000;
  return Number.isFinite(wanted) ? Math.min(Math.max(0, wanted), LONGEST_PAUSE_MS) : 0;
}
