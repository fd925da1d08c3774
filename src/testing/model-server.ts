/**
 * A model behind a real HTTP server on the loopback: OpenAI chat completions, OpenAI responses and Anthropic messages,
 * streamed or not as the request asks. It plays the same steps as the faux model, with network faults added.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isObject, type Json, parseJson } from "../lib/json.ts";
import { type Stamp, systemStamp } from "../lib/stamp.ts";
import { callNumbers, makePlan, type Plan } from "../model/faux/faux-plan.ts";
import type { ModelRequest } from "../model/provider.ts";
import { type HttpPlay, type HttpStep, isMoves, numberHttpCalls } from "./http-reply.ts";
import { type ReplyTarget, sendRaw, sendReply, sendStatus } from "./http-sender.ts";
import { chatWire } from "./wire/chat-wire.ts";
import { messagesWire } from "./wire/messages-wire.ts";
import { responsesWire } from "./wire/responses-wire.ts";
import { openaiError, type TestWire } from "./wire/wire.ts";

export interface ModelServerOptions {
  /** The replies, one step for each call: the steps of a faux model, `withFaults`, `httpStatus`, `rawBytes`. */
  readonly steps?: readonly HttpStep[];
  /** A plan from `httpPlan` that several servers share. */
  readonly plan?: HttpPlan;
  /** Decides the reply to every call, without a limit. */
  readonly handler?: (request: RecordedRequest) => HttpPlay | Promise<HttpPlay>;
  /** The models that GET /models lists. Default: "faux-model". */
  readonly models?: readonly string[];
  /** The port to listen on. Default: any free one. */
  readonly port?: number;
  readonly stamp?: Stamp;
  /** Number of requests to record; older ones are dropped. Default: 10,000. */
  readonly keepRequests?: number;
}

export interface RecordedRequest {
  /** Counts from 1 over all requests. */
  readonly number: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json | undefined;
  /** Milliseconds on the server's monotonic clock. */
  readonly atMs: number;
  readonly wire: TestWire["name"] | undefined;
  /** The request to the model, in the terms of the provider port. */
  readonly request: ModelRequest | undefined;
}

export interface ModelServer extends AsyncDisposable {
  /** `http://127.0.0.1:41234` */
  readonly url: string;
  /** For a provider's settings: `url` with `/v1`. */
  readonly baseUrl: string;
  readonly port: number;
  readonly requests: readonly RecordedRequest[];
  /** Throws for an unused step, a call without a step, and a fault that never occurred. */
  assertSpent(): void;
  /** Breaks all connections. Resolves when the port is free. */
  close(): Promise<void>;
}

export type HttpPlan = Plan<HttpPlay>;

/** Steps that several servers share: each call to any of them takes the next. */
export function httpPlan(...steps: readonly HttpStep[]): HttpPlan {
  return makePlan({ owner: "model server", steps, number: numberHttpCalls });
}

export async function modelServer(options: ModelServerOptions): Promise<ModelServer> {
  const plan = options.plan ?? httpPlan(...(options.steps ?? []));
  const desk = makeDesk(options, plan);
  const server = createServer((incoming, response) => {
    handle(incoming, response, desk).catch((error: unknown) => {
      // A client that disconnected before its request was complete is not a problem of the script.
      if (incoming.complete) desk.problems.push(messageOf(error));
      response.destroy();
    });
  });
  server.on("clientError", (_, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
  // A TCP server's address is never a pipe's name.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    port,
    requests: desk.requests,
    close,
    [Symbol.asyncDispose]: close,
    assertSpent() {
      if (desk.problems.length > 0) throw new Error(desk.problems.join("\n"));
      plan.assertSpent();
    },
  };
}

/** State shared by the requests of one server. */
interface ServerState {
  readonly requests: RecordedRequest[];
  /** Problems that `assertSpent` reports. */
  readonly problems: string[];
  readonly models: readonly string[];
  readonly stamp: Stamp;
  decide(recorded: RecordedRequest, request: ModelRequest, signal: AbortSignal): Promise<HttpPlay>;
  record(incoming: IncomingMessage, text: string): RecordedRequest;
}

function makeDesk(options: ModelServerOptions, plan: HttpPlan): ServerState {
  const { handler, models = ["faux-model"], stamp = systemStamp, keepRequests = 10_000 } = options;
  const requests: RecordedRequest[] = [];
  const nextId = callNumbers();
  let requestCount = 0;
  return {
    requests,
    problems: [],
    models,
    stamp,
    async decide(recorded, request, signal) {
      return handler ? numberHttpCalls(await handler(recorded), nextId) : plan.take(request, signal);
    },
    record(incoming, text) {
      requestCount += 1;
      const recorded = readRequest(incoming, text, { number: requestCount, atMs: stamp.monotonic() });
      requests.push(recorded);
      if (requests.length > keepRequests) requests.shift();
      return recorded;
    },
  };
}

async function handle(incoming: IncomingMessage, response: ServerResponse, desk: ServerState): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("model server: the client went away")));
  const { signal } = gone;
  const text = await readBody(incoming);
  if (text === undefined) return sendJson(response, 413, openaiError({ message: "body too large", status: 413 }));
  const recorded = desk.record(incoming, text);
  const { request, body, number } = recorded;
  const wire = wireOf(recorded);
  if (!wire || !request || !isObject(body)) return answerOther(recorded, response, desk.models);
  const sending: ReplyTarget = { response, wire, body, number, faults: {}, stamp: desk.stamp, signal };
  try {
    await send(await desk.decide(recorded, request, signal), sending);
  } catch (error) {
    if (signal.aborted) return;
    const message = messageOf(error);
    desk.problems.push(message);
    // A bad request, so that clients do not retry a call that the script does not know.
    if (!response.headersSent) await sendStatus({ message, status: 400, code: "unexpected_call" }, sending);
  }
}

function send(play: HttpPlay, sending: ReplyTarget): Promise<void> {
  if (isMoves(play)) return sendReply(play, sending);
  const { faults } = play;
  return play.type === "raw" ? sendRaw(play, { ...sending, faults }) : sendReply(play.moves, { ...sending, faults });
}

function readRequest(
  incoming: IncomingMessage,
  text: string,
  mark: Pick<RecordedRequest, "number" | "atMs">,
): RecordedRequest {
  const parsed = parseJson(text);
  const body = parsed.ok ? parsed.value : undefined;
  const { method = "GET", url: path = "/", headers } = incoming;
  const wire = wireOf({ method, path });
  const request = wire && isObject(body) ? wire.readRequest(body) : undefined;
  return { ...mark, method, path, headers, body, wire: wire?.name, request };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const MAX_BODY_BYTES = 64 * 1024 * 1024;

async function readBody(incoming: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

const wires: readonly (readonly [ending: string, wire: TestWire])[] = [
  ["/chat/completions", chatWire],
  ["/responses", responsesWire],
  ["/messages", messagesWire],
];

function wireOf({ method, path }: Pick<RecordedRequest, "method" | "path">): TestWire | undefined {
  if (method !== "POST") return undefined;
  const { pathname } = new URL(path, "http://127.0.0.1");
  return wires.find(([ending]) => pathname.endsWith(ending))?.[1];
}

function answerOther(
  recorded: RecordedRequest,
  response: ServerResponse,
  models = ["faux-model"] as readonly string[],
) {
  const { method, path, wire } = recorded;
  const { pathname } = new URL(path, "http://127.0.0.1");
  if (method === "GET" && pathname.endsWith("/models")) {
    return sendJson(response, 200, { object: "list", data: models.map(listedModel), has_more: false });
  }
  const known = models.find((model) => method === "GET" && pathname.endsWith(`/models/${encodeURIComponent(model)}`));
  if (known !== undefined) return sendJson(response, 200, listedModel(known));
  if (wire) return sendJson(response, 400, openaiError({ message: "the body is not a JSON object", status: 400 }));
  const paths = ["GET /models", ...wires.map(([ending]) => `POST ${ending}`)].join(", ");
  const message = `model server: nothing at ${method} ${pathname}; it knows ${paths}`;
  return sendJson(response, 404, openaiError({ message, status: 404 }));
}

/** Contains the fields of both API families, so that either kind of client finds its own. */
function listedModel(id: string): object {
  const created = Date.UTC(2026, 0, 1);
  return {
    id,
    object: "model",
    created: created / 1000,
    owned_by: "faux",
    type: "model",
    display_name: id,
    created_at: new Date(created).toISOString(),
  };
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
