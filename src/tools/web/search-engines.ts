/** The search services that can be configured: how to query each, and how to read its reply. */
import { isObject } from "../../lib/json.ts";
import { decodeEntities } from "./entities.ts";
import type { SearchHit, SearchQuery } from "./search.ts";

export interface SearchRequest {
  readonly url: URL;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface SearchEngine {
  /** For display. */
  readonly name: string;
  /** Without a trailing slash. Empty when only the user knows it: see `urlVariable`. */
  readonly url: string;
  readonly urlVariable?: string;
  /** Environment variables that may hold the key, the usual one first; empty when the service takes no key. */
  readonly keyVariables: readonly string[];
  /** Advice for a request that the service refuses. */
  readonly whenRefused?: string;
  request(query: SearchQuery, endpoint: { readonly url: string; readonly key: string }): SearchRequest;
  /** Returns the results in the parsed reply, or undefined when the reply has an unknown format. */
  results(reply: unknown): readonly SearchHit[] | undefined;
}

export type EngineName = "searxng" | "brave" | "tavily" | "exa";

/** In the order in which they are tried. */
export const searchEngines: Readonly<Record<EngineName, SearchEngine>> = {
  searxng: {
    name: "SearXNG",
    url: "",
    urlVariable: "SEARXNG_URL",
    keyVariables: [],
    whenRefused: 'A SearXNG instance answers only where "json" is among search.formats in its settings.yml.',
    request: ({ text }, { url }) => get(withQuery(`${url}/search`, { q: text, format: "json" })),
    results: (reply) => hitsIn(reply, "results", { snippet: "content", published: "publishedDate" }),
  },
  brave: {
    name: "Brave Search",
    url: "https://api.search.brave.com/res/v1",
    keyVariables: ["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"],
    request: ({ text, maxResults }, { url, key }) =>
      get(withQuery(`${url}/web/search`, { q: text, count: String(maxResults) }), { "x-subscription-token": key }),
    // A reply without pages has no `web` member.
    results: (reply) =>
      isObject(reply) && reply.web === undefined && isObject(reply.query)
        ? []
        : hitsIn(isObject(reply) ? reply.web : undefined, "results", { snippet: "description", published: "page_age" }),
  },
  tavily: {
    name: "Tavily",
    url: "https://api.tavily.com",
    keyVariables: ["TAVILY_API_KEY"],
    request: ({ text, maxResults }, { url, key }) =>
      post(`${url}/search`, { query: text, max_results: maxResults }, { authorization: `Bearer ${key}` }),
    results: (reply) => hitsIn(reply, "results", { snippet: "content", published: "published_date" }),
  },
  exa: {
    name: "Exa",
    url: "https://api.exa.ai",
    keyVariables: ["EXA_API_KEY"],
    request: ({ text, maxResults }, { url, key }) =>
      post(
        `${url}/search`,
        { query: text, numResults: maxResults, contents: { highlights: true } },
        { "x-api-key": key },
      ),
    results: (reply) => hitsIn(reply, "results", { snippet: "highlights", published: "publishedDate" }),
  },
};

export const engineNames = Object.keys(searchEngines) as EngineName[];

function withQuery(address: string, parameters: Readonly<Record<string, string>>): URL {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}

const get = (url: URL, headers: Readonly<Record<string, string>> = {}): SearchRequest => ({
  url,
  method: "GET",
  headers,
});

const post = (address: string, body: object, headers: Readonly<Record<string, string>>): SearchRequest => ({
  url: new URL(address),
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

/** Results of all four services have `title` and `url`; the other members have different names. */
function hitsIn(
  reply: unknown,
  list: string,
  names: { readonly snippet: string; readonly published: string },
): readonly SearchHit[] | undefined {
  const entries = isObject(reply) ? reply[list] : undefined;
  if (!Array.isArray(entries)) return undefined;
  return entries.filter(isObject).flatMap((entry): SearchHit[] => {
    const url = typeof entry.url === "string" && /^https?:\/\//i.test(entry.url) ? entry.url : undefined;
    if (url === undefined) return [];
    const snippet = plain(entry[names.snippet]);
    const published = plain(entry[names.published]);
    const title = plain(entry.title);
    return [{ url, title, ...(snippet !== "" && { snippet }), ...(published !== "" && { published }) }];
  });
}

/** Removes the HTML tags that some services put around the search terms. */
function plain(value: unknown): string {
  const text = Array.isArray(value) ? value.filter((part) => typeof part === "string").join(" … ") : value;
  if (typeof text !== "string") return "";
  return decodeEntities(text.slice(0, MAX_CHARACTERS).replace(/<\/?[a-z][^<>]{0,100}>/gi, ""))
    .replace(/\s+/g, " ")
    .trim();
}

const MAX_CHARACTERS = 10_000;
