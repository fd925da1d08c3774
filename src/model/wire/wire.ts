/**
 * The part of a model call that all wires share: send the request, detect a stream or a whole reply, feed the decoder,
 * and yield its events. This folder has the wires, their encoders and decoders, and the transport.
 */

import { defined } from "../../lib/defined.ts";
import { ModelError } from "../model-error.ts";
import { countSent, defineProvider, type ModelEvent, type ModelRequest, type Provider } from "../provider.ts";
import { parseBounded } from "./bounded-json.ts";
import type { Endpoint } from "./endpoint.ts";
import { limits } from "./limits.ts";
import { type OptionalParameter, RefusedParameters, refusalWarning, refusedParameter } from "./optional-parameters.ts";
import { type HttpExchange, post } from "./transport/http.ts";
import { type SseEvent, sseReader } from "./transport/sse.ts";
import { type Send, transport } from "./transport/transport.ts";
import { protocolError } from "./wire-error.ts";

export interface Wire {
  /** Appended to the base URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters that a server may refuse and that are then omitted, specific ones first. */
  readonly optional: readonly OptionalParameter[];
  /** Returns the request body without the refused parameters. */
  encode(request: ModelRequest, refused: ReadonlySet<string>): string;
  decoder(request: ModelRequest): Decoder;
}

/** Decodes one reply. */
export interface Decoder {
  /** Decodes one parsed event of a stream. Returns true if it shows that the model is working (a ping does not). */
  event(data: unknown): boolean;
  /** Decodes a reply that was not streamed. */
  whole(reply: unknown): void;
  /**
   * `open`: no finish reason yet. `finished`: the reply is complete, but usage may follow. `closed`: nothing that
   * follows matters.
   */
  readonly state: "open" | "finished" | "closed";
  /** Called when the server sent the marker that ends a stream. */
  end?(): void;
  /** Returns the events that became ready since the last call. */
  drain(): readonly ModelEvent[];
  /** Returns the closing events. Call only when the state is no longer `open`. */
  finish(): readonly ModelEvent[];
}

export function wireProvider(endpoint: Endpoint, wire: Wire): Provider {
  let send: Send | undefined;
  const memory = endpoint.refused ?? new RefusedParameters();
  return defineProvider({
    id: endpoint.id,
    async *stream(request, signal) {
      const decoder = wire.decoder(request);
      send ??= transport(endpoint);
      const { exchange, warnings } = await openExchange({ endpoint, wire, request, send, signal, memory });
      try {
        for (const message of warnings) yield { type: "warning", warningType: "parameter_refused", message };
        if (await isStream(exchange, endpoint)) {
          yield* readStream(exchange, decoder, endpoint.id);
        } else {
          decoder.whole(parse(await exchange.text(limits.eventBytes), endpoint.id));
        }
        if (decoder.state === "open") throw ModelError.incomplete(endpoint.id);
        yield* decoder.finish();
      } finally {
        exchange.close(decoder.state === "open" ? "abandoned" : "finished");
      }
    },
  });
}

interface WireRequest {
  readonly endpoint: Endpoint;
  readonly wire: Wire;
  readonly request: ModelRequest;
  readonly send: Send;
  readonly signal: AbortSignal;
  readonly memory: RefusedParameters;
}

/**
 * Sends the request, and sends it again without each optional parameter that is refused. Each parameter is tried once.
 */
async function openExchange(what: WireRequest): Promise<{ exchange: HttpExchange; warnings: readonly string[] }> {
  const { endpoint, wire, request, send, signal, memory } = what;
  const { path, headers = {}, optional } = wire;
  const { stream, origin, headers: extra, model } = request;
  const fixed = {
    endpoint,
    send,
    path,
    headers,
    stream,
    signal,
    ...defined({ extra, origin }),
  };
  const refused = new Set(memory.of(endpoint, model));
  const warnings: string[] = [];
  for (let body = wire.encode(request, refused); ; ) {
    try {
      const exchange = await post({ ...fixed, body });
      if (warnings.length > 0) memory.remember(endpoint, model, refused);
      return { exchange, warnings };
    } catch (error) {
      const without = (name: string): string => wire.encode(request, new Set([...refused, name]));
      const isSent = ({ name }: OptionalParameter): boolean => !refused.has(name) && without(name) !== body;
      const parameter = refusedParameter(error, () => optional.filter(isSent));
      if (!parameter || !(error instanceof ModelError)) throw error;
      body = without(parameter.name);
      refused.add(parameter.name);
      warnings.push(refusalWarning(error, parameter));
      await request.beforeResending?.();
      countSent(request, 1);
    }
  }
}

async function isStream(exchange: HttpExchange, endpoint: Endpoint): Promise<boolean> {
  const first = String.fromCharCode((await exchange.firstByte()) ?? 0);
  if (first === "<") {
    throw new ModelError(`${endpoint.id}: a web page came back instead of a reply`, {
      kind: "protocol",
      provider: endpoint.id,
      retryable: false,
      hint: "Check the base URL: it may lack a part such as /v1, or a proxy asks you to sign in.",
    });
  }
  return first !== "{" && first !== "[";
}

async function* readStream(exchange: HttpExchange, decoder: Decoder, provider: string): AsyncGenerator<ModelEvent> {
  const reader = sseReader(provider);
  let hurried = false;
  let isDone = false;
  while (!isDone && decoder.state !== "closed") {
    const bytes = await readOn(exchange, decoder);
    for (const batch of bytes ? reader.feed(bytes) : [reader.end()]) {
      if (decodeBatch(batch, decoder, provider)) exchange.progress();
      isDone ||= batch.at(-1)?.data === DONE;
      if (isDone) decoder.end?.();
      const events = decoder.drain();
      if (events.length > 0) yield* events;
    }
    if (bytes === undefined) return;
    if (decoder.state === "finished" && !hurried) {
      hurried = true;
      exchange.hurry(LAST_WORDS_MS);
    }
  }
}

/** Time for usage to follow the finish reason. A server that does not close the stream is not waited for. */
const LAST_WORDS_MS = 5_000;

/** OpenAI's last event; other servers omit it. */
const DONE = "[DONE]";

async function readOn(exchange: HttpExchange, decoder: Decoder): Promise<Uint8Array | undefined> {
  try {
    return await exchange.read();
  } catch (error) {
    if (decoder.state === "open" || !(error instanceof ModelError)) throw error;
    return undefined;
  }
}

function decodeBatch(batch: readonly SseEvent[], decoder: Decoder, provider: string): boolean {
  let alive = false;
  for (const { data } of batch) {
    if (decoder.state === "closed") break;
    if (data === DONE || data === "") continue;
    if (decoder.event(parse(data, provider))) alive = true;
  }
  return alive;
}

function parse(text: string, provider: string): unknown {
  const parsed = parseBounded(text);
  if (parsed.ok) return parsed.value;
  throw protocolError(provider, `the reply is not what this kind of model API sends (${parsed.error.slice(0, 120)})`);
}
