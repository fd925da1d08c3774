/** Queries servers for their models, and finds servers on this machine when nothing is configured. */
import { isObject, parseJson } from "../lib/json.ts";
import type { LocalServer, WireApi } from "./providers/definition.ts";
import type { ModelFetch } from "./wire/endpoint.ts";

export interface ServedModel {
  readonly name: string;
  readonly contextWindow?: number;
}

export interface ModelEndpoint {
  readonly id: string;
  readonly wire: WireApi;
  readonly baseUrl: string;
  readonly local?: LocalServer;
}

export interface ModelListOptions {
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  readonly withinMs: number;
  readonly fetch?: ModelFetch;
  readonly signal?: AbortSignal;
}

export type Served =
  | { readonly type: "models"; readonly models: readonly ServedModel[] }
  /** No server there, or one with another protocol. */
  | { readonly type: "unavailable" }
  /** The server refused the request. */
  | { readonly type: "refused"; readonly status: number };

/** Returns the models of a server. Never throws and never takes longer than `withinMs`. */
export async function listServed(listing: ModelEndpoint, options: ModelListOptions): Promise<Served> {
  const signal = AbortSignal.any([AbortSignal.timeout(options.withinMs), ...(options.signal ? [options.signal] : [])]);
  const get = (url: string): Promise<Reply> => getJson(url, { ...options, signal });
  try {
    const windowPath = listing.local?.windowPath;
    const [list, windows] = await Promise.all([
      get(modelsUrl(listing)),
      windowPath === undefined
        ? new Map<string, number>()
        : loadedWindows(get, new URL(windowPath, listing.baseUrl).href),
    ]);
    if (list.status !== 200) return { type: "refused", status: list.status };
    const models = readModels(list.body);
    if (models === undefined) return { type: "unavailable" };
    return { type: "models", models: models.map((model) => withWindow(model, windows)) };
  } catch {
    return { type: "unavailable" };
  }
}

export interface FoundServer<P extends ModelEndpoint> {
  readonly provider: P;
  readonly models: readonly ServedModel[];
}

/** Returns the first local server, in list order, that has at least one model. */
export async function discoverLocal<P extends ModelEndpoint>(
  providers: readonly P[],
  options: { readonly fetch?: ModelFetch; readonly withinMs?: number },
): Promise<FoundServer<P> | undefined> {
  const candidates = providers.filter(({ local, baseUrl }) => local?.discover && isLoopback(baseUrl));
  const headers = async (): Promise<Record<string, string>> => ({});
  const answers = candidates.map(async (provider) => ({
    provider,
    served: await listServed(provider, { withinMs: 300, ...options, headers }),
  }));
  for (const { provider, served } of await Promise.all(answers)) {
    if (served.type === "models" && served.models.length > 0) return { provider, models: served.models };
  }
  return undefined;
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
}

function modelsUrl({ wire, baseUrl }: ModelEndpoint): string {
  if (wire !== "anthropic") return `${baseUrl}/models`;
  return `${baseUrl}${/\/v\d+$/.test(baseUrl) ? "" : "/v1"}/models?limit=1000`;
}

/** Returns the context size of loaded models as the server runs them, which is often far below the model's maximum. */
async function loadedWindows(get: (url: string) => Promise<Reply>, url: string): Promise<Map<string, number>> {
  const windows = new Map<string, number>();
  const { body } = await get(url).catch((): Reply => ({ status: 0, body: undefined }));
  const models = isObject(body) && Array.isArray(body.models) ? body.models : [];
  for (const model of models) {
    if (isObject(model) && typeof model.name === "string" && isWindow(model.context_length)) {
      windows.set(model.name, model.context_length);
    }
  }
  return windows;
}

function withWindow(model: ServedModel, windows: ReadonlyMap<string, number>): ServedModel {
  const loaded = windows.get(model.name);
  return loaded === undefined ? model : { ...model, contextWindow: loaded };
}

/** Parses the list that all compatible servers share. The field for the context window differs. */
function readModels(body: unknown): ServedModel[] | undefined {
  if (!isObject(body) || !Array.isArray(body.data)) return undefined;
  const models: ServedModel[] = [];
  for (const entry of body.data.slice(0, MAX_MODELS)) {
    if (!isObject(entry) || typeof entry.id !== "string" || entry.id === "") continue;
    const meta = isObject(entry.meta) ? entry.meta : {};
    const stated = [
      entry.context_length,
      entry.context_window,
      entry.max_context_length,
      entry.max_model_len,
      meta.n_ctx,
    ];
    const contextWindow = stated.find(isWindow);
    const name = entry.id.replace(/^models\//, "");
    models.push(contextWindow === undefined ? { name } : { name, contextWindow });
  }
  return models;
}

function isWindow(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

async function getJson(url: string, options: ModelListOptions & { readonly signal: AbortSignal }): Promise<Reply> {
  const headers = await options.headers();
  // A redirect could send the key elsewhere.
  const response = await (options.fetch ?? fetch)(url, { headers, signal: options.signal, redirect: "error" });
  if (!response.ok) {
    await response.body?.cancel();
    return { status: response.status, body: undefined };
  }
  const parsed = parseJson(await boundedText(response));
  return { status: 200, body: parsed.ok ? parsed.value : undefined };
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_CHARACTERS) throw new Error("the list of models is too long");
  }
  return text;
}

const MAX_MODELS = 5_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;
