/** Runs one HTTP hook: posts the payload as JSON and returns the body of a 2xx response. Redirects are not followed. */
import type { IncomingMessage, RequestOptions } from "node:http";
import { isIP } from "node:net";
import { lookupOnly, type ResolvedAddress, type ResolveName, systemResolve } from "../lib/node/checked-dial.ts";
import { messageOf } from "./answer.ts";
import { expandVariables, type HookEnvironment, hookEnvironment } from "./expand.ts";
import type { HookDefinition, HttpRun } from "./hooks.ts";
import { addressProblem, type HookVariables, hostOf, type UrlContext, urlProblem } from "./url-rules.ts";

export type HttpEnd =
  | { readonly kind: "answer"; readonly body: string }
  | { readonly kind: "stopped" }
  | { readonly kind: "failed"; readonly message: string };

export interface HttpPorts extends HookEnvironment {
  readonly signal: AbortSignal;
  /** Resolves host names (default: the system resolver). */
  readonly resolveName?: ResolveName;
}

type HttpDefinition = Pick<HookDefinition, "source" | "point"> & { readonly run: HttpRun };

const MAX_REPLY_BYTES = 1024 * 1024;

export async function runHttp(definition: HttpDefinition, payload: string, ports: HttpPorts): Promise<HttpEnd> {
  const { signal } = ports;
  const stopped = whenAborted(signal);
  try {
    const addresses = await Promise.race([allowedAddresses(definition, ports), stopped.promise]);
    const response = await Promise.race([post(definition, payload, { addresses, ports }), stopped.promise]);
    const status = response.statusCode ?? 0;
    if (status < 200 || status > 299) {
      response.destroy();
      return { kind: "failed", message: `the server answered with status ${status}` };
    }
    return { kind: "answer", body: await Promise.race([readBody(response), stopped.promise]) };
  } catch (error) {
    return signal.aborted ? { kind: "stopped" } : { kind: "failed", message: describe(error) };
  } finally {
    stopped.release();
  }
}

/** Resolves the name once and checks every address. The request connects only to these addresses. */
async function allowedAddresses(definition: HttpDefinition, ports: HttpPorts): Promise<readonly ResolvedAddress[]> {
  const { point, source, run } = definition;
  const context: UrlContext = { point, owner: source.owner, environment: ports.environment };
  const problem = urlProblem(run, context);
  if (problem !== undefined) throw new Error(problem);
  const host = hostOf(new URL(run.url));
  const family = isIP(host);
  const addresses = family !== 0 ? [{ address: host, family }] : await (ports.resolveName ?? systemResolve)(host);
  if (addresses.length === 0) throw new Error(`the name ${host} has no address`);
  for (const { address } of addresses) {
    const refusal = addressProblem(address, context);
    if (refusal !== undefined) throw new Error(refusal);
  }
  return addresses;
}

interface Dial {
  readonly addresses: readonly ResolvedAddress[];
  readonly ports: HttpPorts;
}

async function post(definition: HttpDefinition, payload: string, { addresses, ports }: Dial): Promise<IncomingMessage> {
  const { run } = definition;
  const url = new URL(run.url);
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const options: RequestOptions = {
    method: "POST",
    agent: false,
    lookup: lookupOnly(addresses),
    signal: ports.signal,
    headers: {
      ...expandedHeaders(definition, ports),
      "content-type": "application/json",
      "content-length": Buffer.byteLength(payload),
    },
  };
  return new Promise((resolve, reject) => {
    request(url, options, resolve).on("error", reject).end(payload);
  });
}

/**
 * Expands variables in header values. A project's hook sees only variables that a project's program would see, whatever
 * it lists.
 */
function expandedHeaders(definition: HttpDefinition, ports: HttpPorts): Record<string, string> {
  const { run, source } = definition;
  const visible: HookVariables = source.owner === "project" ? hookEnvironment(definition, ports) : ports.environment;
  const allowed = Object.fromEntries(run.allowedEnvVars.map((name) => [name, visible[name]]));
  const entries = Object.entries(run.headers).map(([name, value]) => [
    name.toLowerCase(),
    expandVariables(value, allowed),
  ]);
  return Object.fromEntries(entries.filter(([name = ""]) => !OWN_HEADERS.has(name)));
}

/** Headers that a configuration cannot set. */
const OWN_HEADERS = new Set(["host", "content-type", "content-length", "transfer-encoding", "connection", "expect"]);

async function readBody(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of response) {
      const bytes: Buffer = Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
      size += bytes.length;
      if (size > MAX_REPLY_BYTES) throw new Error(`the server sent more than ${MAX_REPLY_BYTES} bytes`);
      pieces.push(bytes);
    }
  } finally {
    response.destroy();
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Prefers the network error code to the message: it is more specific and never contains a header. */
function describe(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? `the request failed: ${code}` : messageOf(error);
}

/** Rejects when the signal aborts; for waits that do not take a signal. */
function whenAborted(signal: AbortSignal): { promise: Promise<never>; release(): void } {
  let stop = (): void => undefined;
  const promise = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  promise.catch(() => undefined);
  return { promise, release: () => signal.removeEventListener("abort", stop) };
}
