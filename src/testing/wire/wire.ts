/**
 * The wire formats of the model server: one file per API. An encoder converts the events of a scripted reply to the
 * frames of a stream. For a reply that is not streamed, it converts the same events to the whole body.
 */
import { defined } from "../../lib/defined.ts";
import { isObject } from "../../lib/json.ts";
import type { ModelError } from "../../model/model-error.ts";
import type { ModelEnd, ModelEvent, ModelRequest, Usage } from "../../model/provider.ts";
import type { ToolCall } from "../../protocol/message.ts";

export interface TestWire {
  readonly name: "chat" | "responses" | "messages";
  /** Converts a request of this API to a model request. */
  readRequest(body: Body): ModelRequest;
  encoder(head: ReplyHead): Encoder;
  /** Returns the body of a response with an error status. */
  errorBody(error: WireError): object;
}

/** Known before the first event is sent. */
export interface ReplyHead {
  readonly number: number;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly body: Body;
  readonly usage?: Usage;
  /** Reasoning that only the provider can read. */
  readonly opaque?: string;
}

/** A piece of the stream, and the part that it belongs to, so that a fault can be placed. */
export interface Frame {
  readonly data: string;
  readonly at: "start" | "text" | "reasoning" | "call" | "arguments" | "finish";
}

export interface Encoder {
  begin(): Frame[];
  text(delta: string): Frame[];
  reasoning(delta: string): Frame[];
  openCall(call: Pick<ToolCall, "toolCallId" | "name">): Frame[];
  callArguments(toolCallId: string, delta: string): Frame[];
  closeCall(toolCallId: string): Frame[];
  finish(end: ModelEnd): Frame[];
  /** An error in the middle of a stream. */
  error(error: WireError): Frame[];
  /** Everything so far as one body. */
  whole(end: ModelEnd): object;
}

export interface WireError {
  readonly message: string;
  readonly status: number;
  readonly code?: string;
}

export type Body = Readonly<Record<string, unknown>>;

/** Returns the frames for one event. `seen` holds the calls whose arguments have begun. */
export function encodeEvent(encoder: Encoder, event: ModelEvent, seen: Set<string>): Frame[] {
  switch (event.type) {
    case "text":
      return encoder.text(event.delta);
    case "reasoning":
      return encoder.reasoning(event.delta);
    case "call_delta": {
      const opening = seen.has(event.toolCallId) ? [] : encoder.openCall(event);
      seen.add(event.toolCallId);
      return [...opening, ...encoder.callArguments(event.toolCallId, event.delta)];
    }
    case "call": {
      const { toolCallId } = event.call;
      if (seen.has(toolCallId)) return encoder.closeCall(toolCallId);
      const fragments = inThree(argumentText(event.call));
      return [
        ...encoder.openCall(event.call),
        ...fragments.flatMap((fragment) => encoder.callArguments(toolCallId, fragment)),
        ...encoder.closeCall(toolCallId),
      ];
    }
    case "end":
      return event.error && event.error.kind !== "content_filter"
        ? encoder.error(wireError(event.error))
        : encoder.finish(event);
    case "warning":
      throw new Error('model server: a "warning" event is made by the client and cannot be sent over HTTP');
    case "held":
      throw new Error('model server: a "held" event is made by the client and cannot be sent over HTTP');
    case "retry":
      throw new Error('model server: a "retry" event cannot be sent over HTTP; script the failure and the next call');
  }
}

/** Errors without a status become a bad request, which clients do not retry. */
export function wireError(error: ModelError, status = error.statusCode ?? 400): WireError {
  const code = error.code ?? (error.kind === "context_length" ? "context_length_exceeded" : undefined);
  return { message: error.message, status, ...defined({ code }) };
}

export function serverSentEvent(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Returns an error in OpenAI's format, used by both of its APIs. */
export function openaiError({ message, status, code }: WireError): object {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  return { error: { message, type, param: null, code: code ?? null } };
}

/** Returns the text of a content field, which is a string or a list of parts. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return objects(content)
    .map((part) => (typeof part.text === "string" ? part.text : ""))
    .join("");
}

export function objects(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The fields that mean the same in all three APIs. */
export function commonFields(body: Body): Pick<ModelRequest, "model" | "stream" | "maxOutputTokens" | "cacheKey"> {
  const limit = body.max_completion_tokens ?? body.max_output_tokens ?? body.max_tokens;
  return {
    model: stringOf(body.model),
    stream: body.stream === true,
    ...(typeof limit === "number" && { maxOutputTokens: limit }),
    ...(typeof body.prompt_cache_key === "string" && { cacheKey: body.prompt_cache_key }),
  };
}

function argumentText(call: ToolCall): string {
  return call.argumentsError !== undefined && typeof call.arguments === "string"
    ? call.arguments
    : JSON.stringify(call.arguments);
}

/** Argument text is always sent in pieces, so that a fault can occur between them. */
function inThree(text: string): string[] {
  const size = Math.max(1, Math.ceil(text.length / 3));
  return [text.slice(0, size), text.slice(size, 2 * size), text.slice(2 * size)].filter((piece) => piece !== "");
}
