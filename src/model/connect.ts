/** Creates a provider from its settings. Loads only the code that it needs. */
import { defined } from "../lib/defined.ts";
import type { Stamp } from "../lib/stamp.ts";
import { chatDialectAt } from "./chat-dialect.ts";
import { keyReader, signedHeaders } from "./key.ts";
import type { Provider } from "./provider.ts";
import { providerList } from "./providers/list.ts";
import type { ProviderSettings } from "./settings/settings.ts";
import { searchOf } from "./web-search.ts";
import type { Bounds, Connections, Endpoint, ModelFetch } from "./wire/endpoint.ts";
import type { RefusedParameters } from "./wire/optional-parameters.ts";
import type { OpenSocket } from "./wire/transport/socket.ts";

export interface CatalogDependencies {
  readonly stamp?: Stamp;
  /** Replaces the network for HTTP requests. */
  readonly fetch?: ModelFetch;
  /** Replaces the network for WebSockets, for providers and models that support them. */
  readonly openSocket?: OpenSocket;
  /** The `User-Agent` header. */
  readonly userAgent?: string;
  readonly bounds?: Partial<Bounds>;
  /** Shared by all providers. If absent, each provider has its own. */
  readonly connections?: Connections;
  /** The folder whose `node_modules` has the user's provider packages. Never a project's. */
  readonly packagesFolder?: string;
  /** Receives each key as soon as it is known, so that it can be redacted. */
  readonly onKey?: (key: string, providerId: string) => void;
  /** Remembers the parameters that providers refused, for the life of the process. */
  readonly refused?: RefusedParameters;
  /** Loads such a package (default: `import()`). */
  readonly importModule?: (specifier: string) => Promise<unknown>;
}

/** Loads only the wire that is needed. */
export async function connect(
  provider: ProviderSettings,
  model: string,
  dependencies: CatalogDependencies,
): Promise<Provider> {
  if (provider.npm !== undefined) {
    const { aiSdkProvider } = await import("./ai-sdk/ai-sdk.ts");
    return aiSdkProvider({
      id: provider.id,
      npm: provider.npm,
      packagesFolder: dependencies.packagesFolder,
      key: reportingKey(keyReader(provider.key, dependencies.stamp), provider.id, dependencies),
      baseUrl: provider.baseUrl === "" ? undefined : provider.baseUrl,
      headers: provider.headers,
      options: provider.npmOptions ?? {},
      ...(dependencies.fetch === undefined ? {} : { fetch: asFetch(dependencies.fetch) }),
      bounds: { ...dependencies.bounds, ...provider.bounds },
      ...(dependencies.importModule === undefined ? {} : { importModule: dependencies.importModule }),
    });
  }
  const endpoint = endpointOf(provider, model, dependencies);
  switch (provider.wire) {
    case "completions": {
      const chat = (await import("./wire/openai/openai-chat.ts")).openaiChat(endpoint);
      return searchOf(provider) === "gemini" ? withGeminiSearch(chat, { provider, model, dependencies }) : chat;
    }
    case "responses":
      return (await import("./wire/openai/openai-responses.ts")).openaiResponses(endpoint);
    case "anthropic":
      return (await import("./wire/anthropic/anthropic.ts")).anthropicMessages(endpoint);
  }
}

/** Sends requests with a web search over Gemini's own wire, because its chat endpoint has no search. */
function withGeminiSearch(
  chat: Provider,
  how: { provider: ProviderSettings; model: string; dependencies: CatalogDependencies },
): Provider {
  const { provider, model, dependencies } = how;
  let search: Provider | undefined;
  return {
    id: chat.id,
    async *stream(request, signal) {
      if (request.webSearch && !search) {
        const { geminiSearch } = await import("./wire/openai/gemini-search.ts");
        const auth = provider.auth === "bearer" ? "x-goog-api-key" : provider.auth;
        search = geminiSearch(endpointOf({ ...provider, auth }, model, dependencies), model);
      }
      yield* (request.webSearch && search ? search : chat).stream(request, signal);
    },
  };
}

function reportingKey(
  key: () => Promise<string | undefined>,
  providerId: string,
  { onKey }: CatalogDependencies,
): () => Promise<string | undefined> {
  return async () => {
    const value = await key();
    if (value !== undefined) onKey?.(value, providerId);
    return value;
  };
}

const dialects = providerList.flatMap(({ chatDialect }) => chatDialect ?? []);

function endpointOf(provider: ProviderSettings, model: string, dependencies: CatalogDependencies): Endpoint {
  const { stamp, fetch, openSocket, bounds, refused, connections } = dependencies;
  const route = provider.azure === undefined ? { baseUrl: provider.baseUrl } : azureRoute(provider, model);
  return {
    id: provider.id,
    headers: signedHeaders(introduced(provider, dependencies), stamp, (key) => dependencies.onKey?.(key, provider.id)),
    ...route,
    ...defined({ chatDialect: chatDialectAt(route.baseUrl, dialects) }),
    ...(provider.keyHint === undefined ? {} : { keyHint: provider.keyHint }),
    ...(stamp === undefined ? {} : { stamp }),
    ...(fetch === undefined ? {} : { fetch }),
    ...(openSocket && provider.sockets && provider.wire === "responses" ? { openSocket } : {}),
    ...(refused === undefined ? {} : { refused }),
    ...(provider.streamUsage === undefined ? {} : { streamUsage: provider.streamUsage }),
    ...(connections === undefined ? {} : { connections }),
    bounds: { ...bounds, ...provider.bounds },
  };
}

/** Adds the user agent. A configured header takes precedence, whatever its case. */
function introduced<P extends Pick<ProviderSettings, "headers">>(
  provider: P,
  { userAgent }: Pick<CatalogDependencies, "userAgent">,
): P {
  const { headers } = provider;
  const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === "user-agent");
  return userAgent === undefined || isNamed
    ? provider
    : { ...provider, headers: { "user-agent": userAgent, ...headers } };
}

/** Adapts `fetch` to the signature that packages expect. */
function asFetch(fetch: ModelFetch): typeof globalThis.fetch {
  return (input, init = {}) => fetch(input instanceof Request ? input.url : String(input), init);
}

/** With an API version the model is part of the path. Without one the URL has the usual form. */
function azureRoute({ baseUrl, azure, wire }: ProviderSettings, model: string): { baseUrl: string; query?: string } {
  const resource = baseUrl.replace(/\/openai(?:\/v1)?$/, "");
  const version = azure?.apiVersion;
  if (version === undefined) return { baseUrl: `${resource}/openai/v1` };
  const query = `api-version=${encodeURIComponent(version)}`;
  if (wire === "responses") return { baseUrl: `${resource}/openai`, query };
  return { baseUrl: `${resource}/openai/deployments/${encodeURIComponent(model)}`, query };
}
