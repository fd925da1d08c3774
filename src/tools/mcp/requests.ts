/**
 * Requests that a server may send during a call: elicitation for the user, sampling for a model. They are offered only
 * when the caller can answer, and never outside a call.
 */

import type { Client, ClientCapabilities, ElicitResult } from "@modelcontextprotocol/client";
import { defined } from "../../lib/defined.ts";
import { formDefaults } from "../../lib/form-fields.ts";
import { isObject, isTexts, type Json } from "../../lib/json.ts";
import { UI_EXTENSION } from "./apps.ts";
import { cleanText, jsonProblem } from "./bounds.ts";
import { TASKS_EXTENSION } from "./tasks/call-as-task.ts";

interface ElicitationForm {
  type: "object";
  properties: Record<string, Json>;
  required?: string[];
}

export type McpElicitation = { readonly serverName: string; readonly toolCallId?: string; readonly message: string } & (
  | { readonly mode: "form"; readonly requestedSchema: ElicitationForm }
  | { readonly mode: "url"; readonly url: string; readonly elicitationId: string }
);

interface McpElicitationAnswer {
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, string | number | boolean | string[]>>;
}

export interface McpSampling {
  readonly serverName: string;
  readonly toolCallId?: string;
  readonly systemPrompt?: string;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly text: string }[];
  readonly maxTokens: number;
  readonly modelHints: readonly string[];
}

interface McpSample {
  readonly model: string;
  readonly text: string;
  readonly stopReason?: string;
}

/**
 * Answers requests of a server. The available methods are announced to the server when the connection is made. A method
 * throws an `Error` whose message is sent to the server.
 */
export interface McpAnswerers {
  elicit?(request: McpElicitation, signal: AbortSignal): Promise<McpElicitationAnswer>;
  sample?(request: McpSampling, signal: AbortSignal): Promise<McpSample>;
}

/** The call on whose behalf a server sends a request. Its clock is paused meanwhile. */
export interface ServerCall {
  readonly toolCallId: string | undefined;
  readonly answerers: McpAnswerers;
  readonly signal: AbortSignal;
  /** Number of model calls the server requested during this call. */
  readonly samples: { count: number };
  whileAsking<T>(work: () => Promise<T>): Promise<T>;
}

export interface RequestsOptions {
  readonly serverName: string;
  readonly offers: { readonly elicit: boolean; readonly sample: boolean; readonly apps: boolean };
  /** Absolute paths. */
  readonly roots: readonly string[];
  /** Returns the call that the request belongs to, or why there is none. */
  findCall(): ServerCall | string;
}

const MAX_MESSAGE_CHARACTERS = 4000;
const FORM_LIMITS = { depth: 8, nodes: 1000, characters: 16 * 1024 };
const MAX_FIELDS = 50;
const MAX_SAMPLING_MESSAGES = 100;
const MAX_SAMPLING_CHARACTERS = 256 * 1024;
const MAX_SAMPLING_TOKENS = 16_384;
const MAX_OPEN = 4;
const MAX_SAMPLES_PER_CALL = 25;

export function capabilitiesFor({ offers, roots }: Pick<RequestsOptions, "offers" | "roots">): ClientCapabilities {
  return {
    ...(roots.length > 0 && { roots: {} }),
    ...(offers.elicit && { elicitation: { form: {}, url: {} } }),
    ...(offers.sample && { sampling: {} }),
    extensions: { [TASKS_EXTENSION]: {}, ...(offers.apps && UI_EXTENSION) },
  };
}

export async function answerRequests(client: Client, options: RequestsOptions): Promise<void> {
  const { pathToFileURL } = await import("node:url");
  const { basename } = await import("node:path");
  let open = 0;
  const ask = async <T>(work: (call: ServerCall) => Promise<T>): Promise<T> => {
    const call = options.findCall();
    if (typeof call === "string") throw new Error(call);
    if (open >= MAX_OPEN) throw new Error("Too many questions at once.");
    open++;
    return call.whileAsking(() => work(call)).finally(() => open--);
  };
  if (options.roots.length > 0)
    client.setRequestHandler("roots/list", () => ({
      roots: options.roots.map((path) => ({ uri: pathToFileURL(path).href, name: basename(path) })),
    }));
  if (options.offers.elicit)
    client.setRequestHandler("elicitation/create", ({ params }) =>
      ask((call) => answerElicitation(params, { call, serverName: options.serverName })),
    );
  if (options.offers.sample)
    client.setRequestHandler("sampling/createMessage", ({ params }) =>
      ask((call) => answerSampling(params, { call, serverName: options.serverName })),
    );
}

/** Answers one request of a task, on behalf of the call that created it. */
export async function answerInput(
  { method, params }: { readonly method: string; readonly params?: unknown },
  asked: Asked,
): Promise<unknown> {
  const { whileAsking } = asked.call;
  if (method === "elicitation/create") return whileAsking(() => answerElicitation(params, asked));
  if (method === "sampling/createMessage") return whileAsking(() => answerSampling(params, asked));
  throw new Error(`The server asked for ${cleanText(method, 100)}, which is not supported.`);
}

interface Asked {
  readonly call: ServerCall;
  readonly serverName: string;
}

async function answerElicitation(params: unknown, { call, serverName }: Asked): Promise<ElicitResult> {
  const request = readElicitation(params, { call, serverName });
  if (typeof request === "string") throw new Error(request);
  const { action, content } = (await call.answerers.elicit?.(request, call.signal)) ?? { action: "decline" as const };
  if (action !== "accept" || request.mode !== "form") return { action };
  return { action, content: { ...formDefaults(request.requestedSchema), ...content } };
}

/** Returns the bounded, sanitised request, or an error. */
function readElicitation(params: unknown, { call, serverName }: Asked): McpElicitation | string {
  if (!isObject(params)) return "The request has no parameters.";
  const { toolCallId } = call;
  const message = cleanText(params.message, MAX_MESSAGE_CHARACTERS);
  const shared = { serverName, message, ...defined({ toolCallId }) };
  if (params.mode === "url") {
    const url = secureUrl(params.url);
    if (url === undefined) return "Only complete https URLs are shown to the user.";
    return { ...shared, mode: "url", url, elicitationId: cleanText(params.elicitationId, 200) };
  }
  const requestedSchema = readForm(params.requestedSchema);
  return typeof requestedSchema === "string" ? requestedSchema : { ...shared, mode: "form", requestedSchema };
}

function readForm(schema: unknown): ElicitationForm | string {
  if (!isObject(schema) || !isObject(schema.properties)) return "The form has no fields.";
  const problem = jsonProblem(schema, FORM_LIMITS);
  if (problem !== undefined) return `The form ${problem}.`;
  const { properties, required } = schema;
  if (Object.keys(properties).length > MAX_FIELDS) return `The form has more than ${MAX_FIELDS} fields.`;
  return cleanTexts({ type: "object", properties, ...(isTexts(required) && { required }) });
}

function secureUrl(text: unknown): string | undefined {
  if (typeof text !== "string" || text.length > 4096 || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.protocol === "https:" && url.username === "" && url.password === "" ? url.href : undefined;
}

/** Returns the value with every text sanitised; the caller must have checked its depth. */
function cleanTexts(value: object): ElicitationForm {
  const text = JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "string" ? cleanText(inner, MAX_MESSAGE_CHARACTERS) : inner,
  );
  return JSON.parse(text);
}

type SampleMessage = {
  model: string;
  role: "assistant";
  content: { type: "text"; text: string };
  stopReason?: string;
};

async function answerSampling(params: unknown, { call, serverName }: Asked): Promise<SampleMessage> {
  const request = readSampling(params, serverName, call.toolCallId);
  if (typeof request === "string") throw new Error(request);
  if (call.answerers.sample === undefined) throw new Error("Sampling is not available in this session.");
  if (++call.samples.count > MAX_SAMPLES_PER_CALL)
    throw new Error(`A tool call may ask for at most ${MAX_SAMPLES_PER_CALL} model calls.`);
  return sampleMessage(await call.answerers.sample(request, call.signal));
}

/** Returns the response to `sampling/createMessage`. */
export function sampleMessage({ model, text, stopReason }: McpSample): SampleMessage {
  return { model, role: "assistant", content: { type: "text", text }, ...defined({ stopReason }) };
}

/** Parses the parameters of `sampling/createMessage`. Returns the reason when they cannot be used. */
export function readSampling(params: unknown, serverName: string, toolCallId?: string): McpSampling | string {
  if (!isObject(params) || !Array.isArray(params.messages)) return "The request has no messages.";
  if (params.messages.length > MAX_SAMPLING_MESSAGES)
    return `The request has more than ${MAX_SAMPLING_MESSAGES} messages.`;
  if (params.tools !== undefined || params.toolChoice !== undefined) return "Sampling does not support tools.";
  const messages: { role: "user" | "assistant"; text: string }[] = [];
  for (const message of params.messages) {
    const text = isObject(message) ? textOf(message.content) : undefined;
    if (!isObject(message) || text === undefined) return "Only text messages are supported.";
    messages.push({ role: message.role === "assistant" ? "assistant" : "user", text });
  }
  const systemPrompt = typeof params.systemPrompt === "string" ? params.systemPrompt : "";
  const size = messages.reduce((sum, { text }) => sum + text.length, systemPrompt.length);
  if (size > MAX_SAMPLING_CHARACTERS) return `The request has more than ${MAX_SAMPLING_CHARACTERS / 1024} KiB of text.`;
  const wanted = typeof params.maxTokens === "number" && params.maxTokens >= 1 ? Math.floor(params.maxTokens) : 1024;
  return {
    serverName,
    messages,
    maxTokens: Math.min(wanted, MAX_SAMPLING_TOKENS),
    modelHints: hintsOf(params.modelPreferences),
    ...(systemPrompt !== "" && { systemPrompt }),
    ...defined({ toolCallId }),
  };
}

function textOf(content: unknown): string | undefined {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts = blocks.map((block) => (isObject(block) && block.type === "text" ? block.text : undefined));
  return texts.every((text) => typeof text === "string") ? texts.join("\n") : undefined;
}

function hintsOf(preferences: unknown): string[] {
  const hints = isObject(preferences) && Array.isArray(preferences.hints) ? preferences.hints : [];
  return hints
    .slice(0, 10)
    .map((hint) => cleanText(isObject(hint) ? hint.name : "", 100))
    .filter((name) => name !== "");
}
