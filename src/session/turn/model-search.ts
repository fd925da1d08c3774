/** `web_search` by the session's model: a separate request in which the provider searches and cites. */
import { defined } from "../../lib/defined.ts";
import { estimateTokens } from "../../lib/tokens.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { LimitReached } from "../../loop/run.ts";
import { type ModelEnd, type ModelRequest, noUsage } from "../../model/provider.ts";
import type { Citations } from "../../protocol/citations.ts";
import type { Emit } from "../../protocol/event.ts";
import { ToolError } from "../../tools/tool-error.ts";
import type { SearchAnswer, SearchHit, SearchQuery, WebSearch } from "../../tools/web/search.ts";
import { reportUsage } from "../budget/report-usage.ts";
import type { Expected } from "../budget/reservations.ts";
import { modelReference } from "../model-selection.ts";
import type { RunSettings } from "../run-settings.ts";
import type { SessionModel } from "../session-model.ts";
import { expectedCall } from "./expected-call.ts";
import system from "./model-search.md";

export interface ModelSearch extends Pick<RunSettings, "stamp"> {
  /** A model with a `searchAddress`. */
  readonly model: SessionModel;
  readonly emit: Emit;
  /** The origin of the request and how it is sent. */
  readonly request: Pick<ModelRequest, "stream" | "origin" | "agent" | "priority" | "sent">;
  /** Returns the limit that rules out another model call. Otherwise reserves its expected usage until `usageCounted`. */
  limitReached(expected: Expected): LimitReached | undefined;
  usageCounted(): void;
}

const MAX_SEARCHES = 3;
const MAX_OUTPUT_TOKENS = 8_192;
const MAX_CHARACTERS = 256 * 1024;
/** Names these calls in `troupe.usage`. */
const TURN_ID = "web_search";

export function modelSearch(parts: ModelSearch): WebSearch {
  let last: Promise<unknown> = Promise.resolve();
  return {
    address(query) {
      const url = new URL(parts.model.searchAddress ?? "");
      url.searchParams.set("q", query);
      return url.href;
    },
    search(query, signal) {
      // One at a time: an agent reserves its budget for one model call at a time.
      const search = last.then(() => searchOnce(query, parts, signal));
      last = search.catch(() => undefined);
      return search;
    },
  };
}

async function searchOnce(query: SearchQuery, parts: ModelSearch, signal: AbortSignal): Promise<SearchAnswer> {
  signal.throwIfAborted();
  const { model, stamp } = parts;
  const reached = parts.limitReached(expectedCall({ model, system, tools: [], characters: query.text.length }));
  if (reached) throw new ToolError(`Not searched: ${reached.message}`);
  const began = stamp.monotonic();
  const sent = { requests: 1 };
  const { text, end } = await listen(query, { ...parts, request: { ...parts.request, sent } }, signal);
  const estimate = { ...noUsage, outputTokens: estimateTokens(text) };
  const call = { turnId: TURN_ID, usage: end.usage ?? estimate, estimated: end.usage === undefined };
  const times = { durationMs: stamp.monotonic() - began, timeToFirstTokenMs: undefined, finishReason: end.stop };
  if (sent.requests > 0) await reportUsage({ ...call, ...times, requests: sent.requests }, model, parts.emit);
  parts.usageCounted();
  signal.throwIfAborted();
  if (end.stop === "error" || end.stop === "aborted") {
    const why = end.error?.message ?? "the model gave no answer";
    const hint = end.error?.hint === undefined ? "" : ` ${end.error.hint}`;
    throw new ToolError(`The search by ${modelReference(model)} failed: ${why}.${hint}`, { cause: end.error });
  }
  if (text.trim() === "") throw new ToolError(`The search by ${modelReference(model)} ended without an answer.`);
  return { by: modelReference(model), ...numberCitations(text, end.citations) };
}

interface StreamedReply {
  text: string;
  end: ModelEnd;
}

function listen(query: SearchQuery, parts: ModelSearch, signal: AbortSignal): Promise<StreamedReply> {
  const { model, emit } = parts;
  const reply: StreamedReply = { text: "", end: { type: "end", stop: "error" } };
  const request: ModelRequest = {
    ...parts.request,
    model: model.model,
    system,
    tools: [],
    messages: [{ role: "user", content: query.text }],
    webSearch: { maxSearches: MAX_SEARCHES },
    maxOutputTokens: Math.min(model.maxOutputTokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS),
  };
  const listening = async (): Promise<StreamedReply> => {
    for await (const event of model.provider.stream(request, signal)) {
      if (event.type === "text") reply.text = (reply.text + event.delta).slice(0, MAX_CHARACTERS);
      if (event.type === "end") reply.end = event;
      if (event.type === "retry") {
        reply.text = "";
        void emit("troupe.retry", { attempt: event.attempt, delayMs: event.delayMs, reason: event.error.message });
      }
    }
    return reply;
  };
  return untilAborted(listening(), signal, () => ({ ...reply, end: { type: "end", stop: "aborted" } }));
}

/** Returns the answer with source numbers after each cited part. */
function numberCitations(
  text: string,
  citations: Citations | undefined,
): Pick<SearchAnswer, "hits"> & { text: string } {
  const sources = (citations?.sources ?? []).filter(({ url }) => url !== undefined);
  const numbers = new Map(sources.map(({ id }, index) => [id, index + 1]));
  const marks = (citations?.spans ?? []).map(({ endIndex, references }) => {
    const cites = references.flatMap(({ sourceId }) => numbers.get(sourceId) ?? []);
    return { at: endIndex, mark: [...new Set(cites)].map((number) => `[${number}]`).join("") };
  });
  let shown = text;
  for (const { at, mark } of marks.toSorted((a, b) => b.at - a.at)) {
    if (mark !== "" && at <= text.length) shown = `${shown.slice(0, at)} ${mark}${shown.slice(at)}`;
  }
  const hits = sources.map(({ id, url = "", title = "" }): SearchHit => {
    const snippet = citations?.spans
      .flatMap(({ references }) => references)
      .find((one) => one.sourceId === id)?.citedText;
    return { url, title, ...defined({ snippet }) };
  });
  return { text: shown, hits };
}
