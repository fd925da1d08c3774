/** Runs one search with a service that the user configured. Time and size are limited; redirects are not followed. */
import type { IncomingMessage } from "node:http";
import { parseJson } from "../../lib/json.ts";
import { quoted } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import { ToolError } from "../tool-error.ts";
import { readBody } from "./body.ts";
import type { WebSearch } from "./search.ts";
import type { SearchEngine, SearchRequest } from "./search-engines.ts";

export interface EndpointOptions {
  readonly engine: SearchEngine;
  /** Without a trailing slash. The user chose it, so it may be on this machine or in a private network. */
  readonly url: string;
  /** Empty for a service without keys. */
  readonly key: string;
  /** The source of the key, for messages. */
  readonly keySource: string;
  readonly userAgent: string;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
const MAX_ERROR_CHARACTERS = 300;

export function endpointSearch(options: EndpointOptions): WebSearch {
  const { engine } = options;
  return {
    address(query) {
      const { url } = engine.request({ text: query, maxResults: 1 }, { ...options, key: "" });
      if (!url.searchParams.has("q")) url.searchParams.set("q", query);
      return url.href;
    },
    async search(query, signal) {
      const timeout = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
      const request = engine.request(query, options);
      const { response, text } = await exchange(request, options, AbortSignal.any([signal, timeout])).catch(
        (cause: unknown) => searchError(cause, options, { signal, timeout }),
      );
      const { statusCode = 0 } = response;
      if (statusCode !== 200) throw refusal(response, text, options);
      const reply = parseJson(text);
      const hits = reply.ok ? engine.results(reply.value) : undefined;
      if (!hits) throw new ToolError(`The answer of ${engine.name} is not a list of results.`);
      return { by: engine.name, hits };
    },
  };
}

async function exchange(
  { url, method, headers, body }: SearchRequest,
  { userAgent }: EndpointOptions,
  signal: AbortSignal,
): Promise<{ response: IncomingMessage; text: string }> {
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const all = { accept: "application/json", "accept-encoding": "gzip", "user-agent": userAgent, ...headers };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { method, signal, agent: false, headers: all }, resolve).on("error", reject).end(body);
  });
  const { bytes, isCut } = await readBody(response, signal);
  if (isCut) throw new ToolError("The reply of the search service is too large.");
  return { response, text: bytes.toString() };
}

function searchError(
  cause: unknown,
  { engine, url, timeoutMs = TIMEOUT_MS }: EndpointOptions,
  { signal, timeout }: { signal: AbortSignal; timeout: AbortSignal },
): never {
  if (signal.aborted) throw signal.reason;
  if (timeout.aborted) {
    throw new ToolError(`${engine.name} did not answer within ${timeoutMs / 1000} s.`, { code: "timeout" });
  }
  if (cause instanceof ToolError) throw cause;
  const detail = cause instanceof Error ? ("code" in cause && String(cause.code)) || cause.message : String(cause);
  throw new ToolError(`${engine.name} cannot be reached at ${new URL(url).host}: ${detail}.`, { cause });
}

function refusal(response: IncomingMessage, text: string, { engine, keySource }: EndpointOptions): ToolError {
  const { statusCode = 0, headers } = response;
  if (engine.whenRefused !== undefined && statusCode === 403) {
    return new ToolError(`${engine.name} refused the search (403). ${engine.whenRefused}`);
  }
  if (statusCode === 401 || statusCode === 403) {
    return new ToolError(`${engine.name} refused the key (${statusCode}). The user must check ${keySource}.`);
  }
  if (statusCode === 429) {
    const wait = /^\d{1,6}$/.test(headers["retry-after"] ?? "") ? ` for ${headers["retry-after"]} s` : "";
    return new ToolError(`${engine.name} has reached its search limit (429). Continue without searching${wait}.`);
  }
  const excerpt = clip(quoted(text.trim()), MAX_ERROR_CHARACTERS);
  return new ToolError(
    `${engine.name} answered ${statusCode}.${excerpt === "" ? "" : ` Its answer, as data:\n${excerpt}`}`,
  );
}
