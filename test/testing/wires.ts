/** Just enough of a client for each of the three APIs to see what the model server sent. */
import type { Usage } from "../../src/model/provider.ts";
import type { ModelServer } from "../../src/testing/index.ts";

export interface Parsed {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: string | undefined;
  usage: unknown;
}

export interface ClientWire {
  readonly name: "chat" | "responses" | "messages";
  readonly path: string;
  /** A request with system prompt, tool, call and result. */
  readonly conversation: object;
  prompt(system?: string, text?: string): object;
  parse(body: string, stream: boolean): Parsed;
  errorMessage(body: ErrorData): unknown;
  lastEvent(body: string): ErrorData;
  /** Usage in this API's own words. */
  usage(usage: Usage): unknown;
}

/** The fields this client looks at. Which of them are there depends on the API. */
interface ErrorData {
  readonly error?: { readonly message: string };
  readonly response?: { readonly error?: { readonly message: string } };
}

interface ChatMessage {
  readonly content?: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: { index?: number; id: string; function: { name: string; arguments: string } }[];
}

interface ChatData {
  readonly usage?: object;
  readonly choices: { delta?: ChatMessage; message?: ChatMessage; finish_reason: string | null }[];
}

interface ResponseData {
  readonly status: string;
  readonly usage: object | null;
  readonly output: {
    type: string;
    content?: { text: string }[];
    summary?: { text: string }[];
    call_id?: string;
    name?: string;
    arguments?: string;
  }[];
}

interface ResponseEvent {
  readonly type: string;
  readonly delta: string;
  readonly output_index: number;
  readonly item: { type: string; call_id: string; name: string };
  readonly response: ResponseData;
}

interface MessageData {
  readonly stop_reason: string;
  readonly usage: object;
  readonly content: { type: string; text?: string; thinking?: string; id?: string; name?: string; input?: object }[];
}

interface MessageEvent {
  readonly type: string;
  readonly index: number;
  readonly message: MessageData;
  readonly content_block: { type: string; id: string; name: string };
  readonly delta: { text?: string; thinking?: string; partial_json?: string; stop_reason?: string };
  readonly usage: object;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly contentType: string | null;
  readonly body: string;
  readonly ms: number;
}

export interface Asked {
  readonly stream: boolean;
  readonly body?: object;
  readonly signal?: AbortSignal;
}

export async function ask(server: ModelServer, wire: ClientWire, { stream, body, signal }: Asked): Promise<Answer> {
  const before = performance.now();
  const response = await fetch(`${server.baseUrl}${wire.path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-test": "yes" },
    body: JSON.stringify({ ...(body ?? wire.prompt()), model: "m", stream }),
    ...(signal && { signal }),
  });
  const text = await response.text();
  const contentType = response.headers.get("content-type");
  return {
    status: response.status,
    headers: response.headers,
    contentType,
    body: text,
    ms: performance.now() - before,
  };
}

/** The data of every event in a stream; comments are left out. */
export function eventsOf<T = ErrorData>(body: string): T[] {
  return body
    .split("\n\n")
    .flatMap((block) => block.split("\n").filter((line) => line.startsWith("data: ")))
    .map((line) => line.slice("data: ".length))
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data));
}

const lastEvent = (body: string): ErrorData => eventsOf(body).at(-1) ?? {};
const empty = (): Parsed => ({ text: "", reasoning: "", calls: [], finish: undefined, usage: undefined });
const parameters = { type: "object" };
const view = { name: "view", description: "Views." };

const chat: ClientWire = {
  name: "chat",
  path: "/chat/completions",
  conversation: {
    max_tokens: 99,
    messages: [
      { role: "system", content: "You are the explorer." },
      { role: "user", content: [{ type: "text", text: "look" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "view", arguments: '{"path":"a"}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "seen" },
      { role: "user", content: "go on" },
    ],
    tools: [{ type: "function", function: { ...view, parameters } }],
  },
  prompt: (system = "", text = "go") => ({
    stream_options: { include_usage: true },
    messages: [
      { role: "developer", content: system },
      { role: "user", content: text },
    ],
  }),
  parse(body, stream) {
    const parsed = empty();
    for (const chunk of stream ? eventsOf<ChatData>(body) : [JSON.parse(body) as ChatData]) {
      parsed.usage = chunk.usage ?? parsed.usage;
      const choice = chunk.choices[0];
      if (!choice) continue;
      const message = choice.delta ?? choice.message ?? {};
      parsed.text += message.content ?? "";
      parsed.reasoning += message.reasoning_content ?? "";
      parsed.finish = choice.finish_reason ?? parsed.finish;
      for (const [place, call] of (message.tool_calls ?? []).entries()) {
        const index = call.index ?? place;
        const known = parsed.calls[index] ?? { id: call.id, name: call.function.name, arguments: "" };
        known.arguments += call.function.arguments;
        parsed.calls[index] = known;
      }
    }
    return parsed;
  },
  errorMessage: (body) => body.error?.message,
  lastEvent,
  usage: (usage) => ({
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  }),
};

const responses: ClientWire = {
  name: "responses",
  path: "/responses",
  conversation: {
    max_output_tokens: 99,
    instructions: "You are the explorer.",
    input: [
      { role: "user", content: [{ type: "input_text", text: "look" }] },
      { role: "assistant", content: [{ type: "output_text", text: "I look." }] },
      { type: "function_call", call_id: "c1", name: "view", arguments: '{"path":"a"}' },
      { type: "function_call_output", call_id: "c1", output: "seen" },
      { role: "user", content: "go on" },
    ],
    tools: [{ type: "function", ...view, parameters }],
  },
  prompt: (system = "", text = "go") => ({ instructions: system, input: text }),
  parse(body, stream) {
    const parsed = empty();
    if (!stream) return foldResponse(JSON.parse(body), parsed);
    for (const event of eventsOf<ResponseEvent>(body)) {
      if (event.type === "response.output_text.delta") parsed.text += event.delta;
      if (event.type === "response.reasoning_summary_text.delta") parsed.reasoning += event.delta;
      if (event.type === "response.output_item.added" && event.item.type === "function_call") {
        parsed.calls[event.output_index] = { id: event.item.call_id, name: event.item.name, arguments: "" };
      }
      const call = parsed.calls[event.output_index];
      if (event.type === "response.function_call_arguments.delta" && call) call.arguments += event.delta;
      if (event.type === "response.completed" || event.type === "response.incomplete") {
        const final = foldResponse(event.response, empty());
        parsed.calls = parsed.calls.filter(() => true);
        // What was streamed and what the final response holds must be the same.
        if (JSON.stringify({ ...final, finish: undefined, usage: undefined }) !== JSON.stringify(parsed))
          throw new Error(`${JSON.stringify(final)} is not ${JSON.stringify(parsed)}`);
        return final;
      }
    }
    return parsed;
  },
  errorMessage: (body) => (body.response ?? body).error?.message,
  lastEvent,
  usage: (usage) => ({
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cacheReadTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  }),
};

function foldResponse(response: ResponseData, parsed: Parsed): Parsed {
  for (const item of response.output) {
    if (item.type === "message") parsed.text += item.content?.[0]?.text ?? "";
    if (item.type === "reasoning") parsed.reasoning += item.summary?.[0]?.text ?? "";
    if (item.type === "function_call") {
      parsed.calls.push({ id: item.call_id ?? "", name: item.name ?? "", arguments: item.arguments ?? "" });
    }
  }
  return { ...parsed, finish: response.status, usage: response.usage ?? undefined };
}

const noTokens = JSON.stringify({
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
});

const messages: ClientWire = {
  name: "messages",
  path: "/messages",
  conversation: {
    max_tokens: 99,
    system: [{ type: "text", text: "You are the explorer." }],
    messages: [
      { role: "user", content: "look" },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "view", input: { path: "a" } }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "seen" }] },
          { type: "text", text: "go on" },
        ],
      },
    ],
    tools: [{ ...view, input_schema: parameters }],
  },
  prompt: (system = "", text = "go") => ({ system, messages: [{ role: "user", content: text }] }),
  parse(body, stream) {
    const parsed = empty();
    if (!stream) {
      const message = JSON.parse(body) as MessageData;
      for (const block of message.content) {
        if (block.type === "text") parsed.text += block.text ?? "";
        if (block.type === "thinking") parsed.reasoning += block.thinking ?? "";
        if (block.type === "tool_use") {
          parsed.calls.push({ id: block.id ?? "", name: block.name ?? "", arguments: JSON.stringify(block.input) });
        }
      }
      return { ...parsed, finish: message.stop_reason, usage: used(message.usage) };
    }
    let start = {};
    const open = new Map<number, Parsed["calls"][number] | undefined>();
    for (const event of eventsOf<MessageEvent>(body)) {
      if (event.type === "message_start") start = event.message.usage;
      if (event.type === "content_block_start") {
        const { type, id, name } = event.content_block;
        const call = type === "tool_use" ? { id, name, arguments: "" } : undefined;
        if (call) parsed.calls.push(call);
        open.set(event.index, call);
      }
      if (event.type === "content_block_stop") open.delete(event.index);
      if (event.type === "content_block_delta") {
        if (!open.has(event.index)) throw new Error(`delta for block ${event.index}, which is not open`);
        parsed.text += event.delta.text ?? "";
        parsed.reasoning += event.delta.thinking ?? "";
        const call = open.get(event.index);
        if (call) call.arguments += event.delta.partial_json ?? "";
      }
      if (event.type === "message_delta") {
        if (open.size > 0) throw new Error("the message ended with blocks still open");
        parsed.finish = event.delta.stop_reason;
        parsed.usage = used({ ...start, ...event.usage });
      }
    }
    return parsed;
  },
  errorMessage: (body) => body.error?.message,
  lastEvent,
  usage: (usage) => ({
    input_tokens: usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
  }),
};

/** This API cannot leave usage out; all zero is its way to say nothing. */
function used(usage: object): object | undefined {
  return JSON.stringify(usage) === noTokens ? undefined : usage;
}

export const wires = [chat, responses, messages] as const;
