/** Gemini's own wire, limited to one answer with Google Search, which Gemini's chat endpoint does not have. */
import { isObject } from "../../../lib/json.ts";
import type { Citations } from "../../../protocol/citations.ts";
import type { ModelEvent, ModelRequest, Provider, Usage } from "../../provider.ts";
import { GEMINI_CHAT } from "../../web-search.ts";
import { encodeJson } from "../bounded-json.ts";
import type { Endpoint } from "../endpoint.ts";
import { countOf, ReplyDecoder, textOf } from "../reply.ts";
import { type Decoder, wireProvider } from "../wire.ts";
import { protocolError, refusedContent, reportedError } from "../wire-error.ts";
import { citationLimits, webAddress } from "./openai-citations.ts";

type Fields = Readonly<Record<string, unknown>>;

export function geminiSearch(endpoint: Endpoint, model: string): Provider {
  const baseUrl = endpoint.baseUrl.slice(0, -GEMINI_CHAT.length);
  return wireProvider(
    { ...endpoint, baseUrl },
    {
      path: `/models/${encodeURIComponent(model)}:generateContent`,
      decoder: (request) => new GeminiDecoder(endpoint, request),
      optional: [],
      encode: ({ system, messages, maxOutputTokens }) =>
        encodeJson({
          ...(system !== "" && { systemInstruction: { parts: [{ text: system }] } }),
          contents: messages.map(({ role, content }) => ({
            role: role === "assistant" ? "model" : "user",
            parts: [{ text: content }],
          })),
          tools: [{ google_search: {} }],
          ...(maxOutputTokens !== undefined && { generationConfig: { maxOutputTokens } }),
        }),
    },
  );
}

/** Decodes one reply, which is never streamed. */
class GeminiDecoder implements Decoder {
  readonly #endpoint: Endpoint;
  readonly #reply: ReplyDecoder;
  #events: readonly ModelEvent[] | undefined;

  constructor(endpoint: Endpoint, request: ModelRequest) {
    this.#endpoint = endpoint;
    this.#reply = new ReplyDecoder(endpoint.id, request);
  }

  get state(): Decoder["state"] {
    return this.#events === undefined ? "open" : "closed";
  }

  event(): boolean {
    throw protocolError(this.#endpoint.id, "a stream came back where one reply was asked for");
  }

  whole(data: unknown): void {
    if (isObject(data) && data.error) throw reportedError(this.#endpoint, data.error);
    const isReply = isObject(data) && (Array.isArray(data.candidates) || isObject(data.promptFeedback));
    if (!isReply) throw protocolError(this.#endpoint.id, "the reply is not a response");
    const [candidate] = Array.isArray(data.candidates) ? data.candidates.filter(isObject) : [];
    const grounding = isObject(candidate?.groundingMetadata) ? candidate.groundingMetadata : {};
    const usage = usageOf(data.usageMetadata, grounding);
    const reason = candidate === undefined ? "SAFETY" : textOf(candidate.finishReason);
    if (!FINISHED.has(reason)) {
      this.#events = this.#reply.fail(refusedContent(this.#endpoint, { category: reason }), usage);
      return;
    }
    const text = textIn(candidate);
    this.#reply.text(text);
    const stop = reason === "MAX_TOKENS" ? "length" : "done";
    this.#events = this.#reply.finish({ stop, usage, citations: citationsOf(grounding, text) });
  }

  drain(): readonly ModelEvent[] {
    return [];
  }

  finish(): readonly ModelEvent[] {
    return this.#events ?? [];
  }
}

/** Any other reason means that the answer was withheld. */
const FINISHED: ReadonlySet<string> = new Set(["", "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"]);

function textIn(candidate: Fields | undefined): string {
  const content = isObject(candidate?.content) ? candidate.content : {};
  const parts = Array.isArray(content.parts) ? content.parts.filter(isObject) : [];
  return parts
    .filter(({ thought }) => thought !== true)
    .map(({ text }) => textOf(text))
    .join("");
}

function citationsOf(grounding: Fields, text: string): Citations | undefined {
  const sources = listIn(grounding.groundingChunks).flatMap((chunk, index): Citations["sources"] => {
    const web = isObject(chunk.web) ? chunk.web : {};
    const url = webAddress(web.uri);
    const title = textOf(web.title).slice(0, citationLimits.titleCharacters);
    return url === undefined
      ? []
      : [{ id: `source-${index + 1}`, provider: "client", ...(title !== "" && { title }), url }];
  });
  if (sources.length === 0) return undefined;
  const known = new Set(sources.map(({ id }) => id));
  const bytes = Buffer.from(text);
  const at = (offset: unknown): number => bytes.subarray(0, countOf(offset)).toString().length;
  const spans = listIn(grounding.groundingSupports).flatMap(({ segment, groundingChunkIndices }) => {
    const endpoint = isObject(segment) ? segment : {};
    const [startIndex, endIndex] = [at(endpoint.startIndex), at(endpoint.endIndex)];
    const indices = Array.isArray(groundingChunkIndices) ? groundingChunkIndices : [];
    const references = indices
      .map((index) => ({ sourceId: `source-${countOf(index) + 1}` }))
      .filter(({ sourceId }) => known.has(sourceId));
    return endIndex > startIndex && references.length > 0 ? [{ startIndex, endIndex, references }] : [];
  });
  return { sources, spans };
}

function listIn(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isObject).slice(0, MAX_ENTRIES) : [];
}

/** Bounds the work: each span is searched in the whole text. */
const MAX_ENTRIES = 200;

function usageOf(counts: unknown, grounding: Fields): Usage | undefined {
  if (!isObject(counts)) return undefined;
  const searches = Array.isArray(grounding.webSearchQueries) ? grounding.webSearchQueries.length : 0;
  const reasoningTokens = countOf(counts.thoughtsTokenCount);
  return {
    inputTokens: countOf(counts.promptTokenCount) + countOf(counts.toolUsePromptTokenCount),
    outputTokens: countOf(counts.candidatesTokenCount) + reasoningTokens,
    cacheReadTokens: countOf(counts.cachedContentTokenCount),
    cacheWriteTokens: 0,
    reasoningTokens,
    ...(searches > 0 && { webSearches: searches }),
  };
}
