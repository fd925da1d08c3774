/** One attempt to connect to a server: process or HTTP, protocol version, capabilities. */

import { setTimeout as delay } from "node:timers/promises";
import type { AuthProvider, Client, FetchLike, OAuthClientProvider, Transport } from "@modelcontextprotocol/client";
import { defined } from "../../lib/defined.ts";
import { childEnvironment } from "../../lib/node/child-environment.ts";
import type { PreparedProgram, PrepareProgram } from "../../lib/node/program.ts";
import { MARK_NAME } from "../shell/process/family.ts";
import type { Watchdog } from "../shell/process/watchdog.ts";
import { cleanText } from "./bounds.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import { httpEndpoint } from "./http-endpoint.ts";
import { type SignInRefusal, watchRefusals } from "./oauth/oauth-challenge.ts";
import type { HostTokens } from "./oauth/oauth-host.ts";
import { isPackageRunner } from "./package-runner.ts";
import { answerRequests, capabilitiesFor, type RequestsOptions } from "./requests.ts";
import type { McpServerConfig, McpStdioTransport } from "./server.ts";
import { StdioTransport } from "./stdio-transport.ts";
import { LIBRARY_MS } from "./tasks/call-clock.ts";
import { TaskMessages } from "./tasks/task-messages.ts";

type McpAuthProvider = (AuthProvider | OAuthClientProvider) & { onRefused?(refusal: SignInRefusal): Promise<void> };

export type PauseClock = <T>(work: () => Promise<T>) => Promise<T>;

export type McpList = "resources" | "prompts";

/** Options shared by all connections of a process. */
export interface OpenBase {
  readonly version: string;
  /** The working directory of servers that name none. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly prepare?: PrepareProgram;
  /** Private hosts that the user allows for every entry. */
  readonly allowPrivateHosts?: readonly string[];
  authProvider?(config: McpServerConfig): McpAuthProvider | undefined | Promise<McpAuthProvider | undefined>;
  /** Remembers servers that ignore the version probe, so that they are not probed at each start. */
  readonly probes?: {
    isIgnored(config: McpServerConfig): Promise<boolean>;
    wasIgnored(config: McpServerConfig): Promise<void>;
  };
  watchdog(): Promise<Watchdog>;
  /** Returns a mark for the processes of one server. */
  newMark(): string;
}

export interface OpenRequest {
  readonly config: McpServerConfig;
  readonly base: OpenBase;
  readonly requests: RequestsOptions;
  /** True when the server is known to support only protocol versions before 2026. */
  readonly isLegacy: boolean;
  /** Cancels the attempt, also on timeout. */
  readonly signal: AbortSignal;
  readonly whileAsking: PauseClock;
  /** Set when the host program provides tokens; stored sign-ins are then not used. */
  readonly tokens?: Pick<HostTokens, "held" | "requestToken">;
  onToolsChanged(): void;
  /** Another list of the server changed. */
  onListChanged(what: McpList): void;
  onLog(level: string, text: string): void;
  onWarning(message: string): void;
}

export interface OpenClient {
  readonly client: Client;
  readonly tasks: TaskMessages;
  readonly isLegacy: boolean;
  readonly ignoredProbe: boolean;
  /** Resolves when the connection has ended, on either side. */
  readonly closed: Promise<void>;
  /** Returns why it ended and its last output, as far as known. */
  diagnosis(): string;
  close(): Promise<void>;
}

/** A failure to connect, with the server's diagnosis. */
export class OpenError extends Error {
  override readonly name = "OpenError";
  readonly diagnosis: string;

  constructor(cause: unknown, diagnosis: string) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.diagnosis = diagnosis;
  }
}

const MAX_STDERR_SHOWN = 1000;
const MAX_PROBE_MS = 10_000;
const MAX_LOG_CHARACTERS = 2000;
/** Minimum interval between notifications of list changes. */
const LIST_CHANGED_MS = 300;
const FAREWELL_MS = 500;

export async function openConnection(request: OpenRequest): Promise<OpenClient> {
  const { config, base } = request;
  const isOld =
    request.isLegacy || config.transport.type === "sse" || ((await base.probes?.isIgnored(config)) ?? false);
  try {
    const opened = await attempt(request, isOld);
    if (opened.ignoredProbe) await base.probes?.wasIgnored(config);
    return opened;
  } catch (error) {
    // Some servers exit on any message before "initialize". They are started again without the probe.
    if (isOld || !(error instanceof ProbeKilledError)) throw error;
    return attempt(request, true);
  }
}

class ProbeKilledError extends OpenError {}

async function attempt(request: OpenRequest, isLegacy: boolean): Promise<OpenClient> {
  const { signal } = request;
  const carrier = await carrierFor(request);
  const client = await newClient(request, isLegacy);
  const closed = new Promise<void>((resolve) => {
    client.onclose = resolve;
  });
  client.onerror = () => undefined;
  const stop = (): void => void carrier.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    await Promise.race([client.connect(carrier.transport, { timeout: LIBRARY_MS, signal }), rejectOnAbort(signal)]);
    const era = client.getProtocolEra();
    const tasks = new TaskMessages();
    tasks.listen(carrier.transport);
    return {
      client,
      tasks,
      isLegacy: era === "legacy",
      ignoredProbe: carrier.ignoredProbe?.() ?? false,
      closed,
      diagnosis: carrier.diagnosis,
      close: () => carrier.close(),
    };
  } catch (cause) {
    const wasKilled = !isLegacy && carrier.endedByItself() && !signal.aborted;
    await carrier.close();
    if (signal.aborted) throw signal.reason;
    throw wasKilled ? new ProbeKilledError(cause, carrier.diagnosis()) : new OpenError(cause, carrier.diagnosis());
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

async function newClient(request: OpenRequest, isLegacy: boolean): Promise<Client> {
  const { config, base, requests } = request;
  const { Client: McpClient } = await import("@modelcontextprotocol/client");
  const client = new McpClient(
    { name: "troupe", version: base.version },
    {
      capabilities: capabilitiesFor(requests),
      versionNegotiation: isLegacy ? { mode: "legacy" } : { mode: "auto", probe: { timeoutMs: probeMs(config) } },
      // A server's schema is data; compiling it could take unlimited time.
      jsonSchemaValidator: {
        getValidator: () => (input: unknown) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
      inputRequired: { maxRounds: 10 },
      // Without delay: from now on nothing may be called by the previous listing.
      listChanged: {
        tools: { autoRefresh: false, debounceMs: 0, onChanged: () => request.onToolsChanged() },
        resources: {
          autoRefresh: false,
          debounceMs: LIST_CHANGED_MS,
          onChanged: () => request.onListChanged("resources"),
        },
        prompts: { autoRefresh: false, debounceMs: LIST_CHANGED_MS, onChanged: () => request.onListChanged("prompts") },
      },
    },
  );
  await answerRequests(client, requests);
  client.setNotificationHandler("notifications/message", ({ params }) => {
    const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data ?? "");
    request.onLog(params.level, cleanText(text, MAX_LOG_CHARACTERS));
  });
  return client;
}

/** Only a process may ignore an unknown request; it is then asked with the older protocol. */
function probeMs({ transport, timeoutMs }: McpServerConfig): number {
  return transport.type === "stdio" ? Math.min(MAX_PROBE_MS, timeoutMs / 2) : LIBRARY_MS;
}

interface Carrier {
  readonly transport: Transport;
  endedByItself(): boolean;
  ignoredProbe?(): boolean;
  diagnosis(): string;
  close(): Promise<void>;
}

async function carrierFor(request: OpenRequest): Promise<Carrier> {
  const { transport } = request.config;
  return transport.type === "stdio" ? processCarrier(request, transport) : httpCarrier(request, transport.type);
}

async function processCarrier({ config, base, onWarning }: OpenRequest, stdio: McpStdioTransport): Promise<Carrier> {
  const mark = base.newMark();
  const cwd = stdio.cwd ?? base.cwd;
  const environment = childEnvironment(base.environment, { values: { ...stdio.environment, [MARK_NAME]: mark } });
  const plain: PreparedProgram = {
    program: stdio.command,
    arguments: stdio.args,
    environment,
    release: async () => undefined,
  };
  const watchdog = await base.watchdog();
  const program =
    (await base.prepare?.({
      program: stdio.command,
      arguments: stdio.args,
      cwd,
      environment,
      scope: config.scope === "project" && config.sandbox !== "off" ? "project" : "user",
      hosts: stdio.hosts ?? [],
    })) ?? plain;
  if (program.warning !== undefined) onWarning(program.warning);
  const transport = new StdioTransport({ program, cwd, mark, watchdog, mayInstall: isPackageRunner(config) });
  return {
    transport,
    ignoredProbe: () => transport.ignoredProbe,
    endedByItself: () => transport.hasEnded && (transport.failure?.startsWith("it ended") ?? false),
    diagnosis() {
      const said = cleanText(transport.stderr.trim().slice(-MAX_STDERR_SHOWN), MAX_STDERR_SHOWN * 2);
      return [transport.failure ?? "", said === "" ? "" : `its last output: ${said}`]
        .filter((part) => part !== "")
        .join("; ");
    },
    close: () => transport.close(),
  };
}

async function httpCarrier(request: OpenRequest, type: "http" | "sse"): Promise<Carrier> {
  const { config, base, tokens } = request;
  const endpoint = httpEndpoint(config, base.allowPrivateHosts);
  let failure = "";
  const guarded = await guardedFetch(endpoint, (reason) => {
    failure = reason;
    void carrier.close();
  });
  const authProvider = tokens ? undefined : await base.authProvider?.(config);
  const library = await import("@modelcontextprotocol/client");
  const watched = watchRefusals(guarded.fetch, endpoint.url.href, (refusal) => authProvider?.onRefused?.(refusal));
  const fetch = tokens ? await withToken(request, tokens, guarded.fetch) : watched;
  const options = { fetch, ...defined({ authProvider }) };
  const transport =
    type === "http"
      ? new library.StreamableHTTPClientTransport(endpoint.url, options)
      : new library.SSEClientTransport(endpoint.url, options);
  let closing: Promise<void> | undefined;
  const carrier: Carrier = {
    transport,
    endedByItself: () => false,
    diagnosis: () => failure,
    close() {
      closing ??= leave(transport).finally(() => guarded.close());
      return closing;
    },
  };
  return carrier;
}

/** Pauses all time limits while the host signs a user in. */
async function withToken(
  { config, whileAsking }: OpenRequest,
  { held, requestToken }: NonNullable<OpenRequest["tokens"]>,
  fetch: FetchLike,
): Promise<FetchLike> {
  const { hostAuthorisedFetch } = await import("./oauth/oauth-host.ts");
  return hostAuthorisedFetch({
    config,
    fetch,
    ...defined({ held }),
    requestToken: (wanted) => whileAsking(() => requestToken(wanted)),
  });
}

/** Ends the server's session for us, within a short time limit. */
async function leave(transport: Transport & { terminateSession?(): Promise<void> }): Promise<void> {
  if (transport.sessionId !== undefined && transport.terminateSession !== undefined) {
    const stop = new AbortController();
    const moment = delay(FAREWELL_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    await Promise.race([transport.terminateSession().catch(() => undefined), moment]);
    stop.abort();
  }
  await transport.close();
}
