import type { ModelRequest, Provider } from "../../src/model/provider.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { AssistantMessage, Message } from "../../src/protocol/message.ts";
import { Conversation } from "../../src/session/conversation.ts";
import { collect, placeWith, request } from "./support.ts";

export interface RoundTrip {
  readonly message: AssistantMessage;
  /** The body of the request that follows the reply. */
  readonly next: Readonly<Record<string, unknown>>;
}

/**
 * Reads a reply, stores it in the form of the log, reads it back as after a restart, and sends the next request.
 * `second` is the provider of that next request; the same one by default.
 */
export async function roundTrip(options: {
  readonly wire: (endpoint: Endpoint) => Provider;
  readonly stream: string;
  readonly place?: Partial<Endpoint>;
  readonly second?: { readonly wire?: (endpoint: Endpoint) => Provider; readonly place?: Partial<Endpoint> };
  readonly asked?: Partial<ModelRequest>;
}): Promise<RoundTrip> {
  const { wire, stream, place = {}, second = {}, asked = {} } = options;
  const message = restored(await replyOf(wire(placeWith(() => new Response(stream), place)), asked));
  const results = message.calls.map(
    ({ toolCallId }): Message => ({ role: "tool", toolCallId, content: "Done.", isError: false }),
  );
  const bodies: Record<string, unknown>[] = [];
  const recording = placeWith(
    ({ body }) => {
      bodies.push(JSON.parse(String(body)));
      return new Response(stream);
    },
    { ...place, ...second.place },
  );
  const messages = [...request.messages, message, ...results];
  await collect((second.wire ?? wire)(recording), { ...request, ...asked, messages });
  return { message, next: bodies[0] ?? {} };
}

async function replyOf(provider: Provider, asked: Partial<ModelRequest>): Promise<AssistantMessage> {
  const events = await collect(provider, { ...request, ...asked });
  const end = events.at(-1);
  if (end?.type !== "end" || end.stop === "error") throw new Error(`no reply: ${JSON.stringify(end)}`);
  return {
    role: "assistant",
    content: events.map((event) => (event.type === "text" ? event.delta : "")).join(""),
    calls: events.flatMap((event) => (event.type === "call" ? [event.call] : [])),
    ...(end.reasoning && { reasoning: end.reasoning }),
  };
}

/** The message as the log gives it back. */
function restored({ content, calls, reasoning }: AssistantMessage): AssistantMessage {
  const data: Extract<SessionEvent, { type: "assistant.message" }>["data"] = {
    messageId: "m1",
    content,
    toolRequests: calls.map((call) => ({ ...call, type: "function" })),
    ...(reasoning?.text !== undefined && { reasoningText: reasoning.text }),
    ...(reasoning?.opaque !== undefined && { reasoningOpaque: reasoning.opaque }),
    ...(reasoning?.wireField !== undefined && { reasoningWireField: reasoning.wireField }),
  };
  const event: SessionEvent = {
    ...{ id: "e1", timestamp: "2026-01-01T00:00:00.000Z", parentId: null, type: "assistant.message" },
    data: JSON.parse(JSON.stringify(data)),
  };
  const conversation = new Conversation();
  conversation.apply(event);
  const message = conversation.entries[0]?.message;
  if (message?.role !== "assistant") throw new Error("the log lost the message");
  return message;
}
