/**
 * A provider for packages that implement the AI SDK's language model interface (versions 2 and 3). The package is
 * loaded from the user's packages folder, never from a project.
 */
import { isObject } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { ModelError } from "../model-error.ts";
import { defineProvider, type ModelEvent, type ModelRequest, type Provider } from "../provider.ts";
import { type Bounds, defaultBounds, type Endpoint } from "../wire/endpoint.ts";
import { endpointOrigin, httpError, networkError, presentable } from "../wire/wire-error.ts";
import { promptOf, responseFormatOf, toolsOf } from "./ai-sdk-encode.ts";
import { type ImportModule, importPackage } from "./ai-sdk-load.ts";
import { partReader } from "./ai-sdk-parts.ts";

export interface AiSdkOptions {
  readonly id: string;
  /** The package name, such as `@ai-sdk/xai`. */
  readonly npm: string;
  readonly packagesFolder: string | undefined;
  readonly key: () => Promise<string | undefined>;
  readonly baseUrl: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Passed to the package unchanged. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly fetch?: typeof fetch;
  readonly bounds?: Partial<Bounds>;
  readonly importModule?: ImportModule;
}

export async function aiSdkProvider(options: AiSdkOptions): Promise<Provider> {
  const exported = await importPackage(options.npm, options.packagesFolder, options.importModule);
  const create = factoryOf(exported, options.npm);
  return defineProvider({
    id: options.id,
    async *stream(request, signal) {
      const apiKey = await options.key();
      try {
        yield* converse({ model: modelOf({ create, options, apiKey }, request.model), request, signal, options });
      } catch (error) {
        if (signal.aborted) throw error;
        throw toModelError(error, options, apiKey);
      }
    },
  });
}

interface Conversation {
  readonly model: LanguageModel;
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  readonly options: AiSdkOptions;
}

async function* converse({ model, request, signal, options }: Conversation): AsyncGenerator<ModelEvent> {
  const watch = new Watch(options, signal);
  const parts = partReader(options);
  try {
    const { stream } = await watch.within(model.doStream(callOptions(request, watch.signal, options)));
    const reader = stream.getReader();
    try {
      for (;;) {
        const { done, value } = await watch.within(reader.read());
        if (done) break;
        if (parts.read(value)) watch.progress();
        yield* parts.drain();
      }
    } finally {
      reader.cancel().catch(() => undefined);
    }
    yield parts.finish();
  } finally {
    watch.close();
  }
}

function callOptions(request: ModelRequest, abortSignal: AbortSignal, options: AiSdkOptions): object {
  const tools = toolsOf(request.tools);
  return {
    prompt: promptOf(request, options.npm),
    ...(tools.length === 0 ? {} : { tools, toolChoice: { type: "auto" } }),
    ...(request.maxOutputTokens === undefined ? {} : { maxOutputTokens: request.maxOutputTokens }),
    ...(request.responseFormat && { responseFormat: responseFormatOf(request.responseFormat) }),
    headers: options.headers,
    abortSignal,
    includeRawChunks: false,
  };
}

/** The part of the language model interface that is used. */
interface LanguageModel {
  doStream(options: object): Promise<{ stream: ReadableStream<unknown> }>;
}

type Factory = (settings: object) => unknown;

/** Returns the package's factory. Packages have only the name pattern `createName` in common. */
function factoryOf(module: Record<string, unknown>, npm: string): Factory {
  const names = Object.keys(module).filter((name) => /^create[A-Z]/.test(name) && typeof module[name] === "function");
  const short = (npm.split("/").at(-1) ?? npm).replaceAll("-", "");
  const name = names.find((candidate) => candidate.toLowerCase() === `create${short}`) ?? names.sort()[0];
  const factory = name === undefined ? undefined : module[name];
  if (typeof factory === "function") return factory as Factory;
  throw new TroupeError("configuration", `${npm} is not a provider package: it exports no create function`);
}

function modelOf(
  { create, options, apiKey }: { create: Factory; options: AiSdkOptions; apiKey: string | undefined },
  name: string,
): LanguageModel {
  const provider = create({
    name: options.id,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(options.baseUrl === undefined ? {} : { baseURL: options.baseUrl }),
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    ...options.options,
  });
  const model = languageModel(provider, name);
  if (isObject(model) && typeof model.doStream === "function") {
    const version = model.specificationVersion;
    if (version === "v2" || version === "v3") return model as unknown as LanguageModel;
    throw new TroupeError(
      "configuration",
      `${options.npm} implements version ${String(version)} of the AI SDK's interface`,
      {
        hint: "Install a release of the package that implements v2 or v3.",
      },
    );
  }
  throw new TroupeError("configuration", `${options.npm} does not provide language models`);
}

function languageModel(provider: unknown, name: string): unknown {
  if ((typeof provider === "function" || isObject(provider)) && "languageModel" in provider) {
    const { languageModel: make } = provider as { languageModel: unknown };
    if (typeof make === "function") return make.call(provider, name);
  }
  return typeof provider === "function" ? provider(name) : undefined;
}

function toModelError(error: unknown, options: AiSdkOptions, apiKey: string | undefined): ModelError {
  if (error instanceof ModelError) return error;
  const endpoint: Endpoint = { id: options.id, baseUrl: options.baseUrl ?? "", headers: async () => ({}) };
  const details = isObject(error) ? error : {};
  const message = error instanceof Error ? error.message : String(error);
  if (typeof details.statusCode === "number") {
    return httpError(endpoint, {
      status: details.statusCode,
      header: (name) => headerOf(details.responseHeaders, name),
      body: typeof details.responseBody === "string" && details.responseBody !== "" ? details.responseBody : message,
      secrets: apiKey === undefined ? [] : [apiKey],
    });
  }
  if (details.name === "AI_APICallError" || (error instanceof TypeError && message === "fetch failed")) {
    return networkError(endpoint, options.baseUrl === undefined ? "its server" : endpointOrigin(endpoint), error);
  }
  const kind = details.name === "AI_LoadAPIKeyError" ? "authentication" : "internal";
  return new ModelError(`${options.id}: ${presentable(message, apiKey === undefined ? [] : [apiKey])}`, {
    kind: details.name === "AI_NoSuchModelError" ? "request" : kind,
    provider: options.id,
    cause: error,
    ...(kind === "authentication"
      ? { hint: `Give ${options.id} an apiKey or apiKeyVariable in your providers file.` }
      : {}),
    ...(error instanceof TroupeError && error.hint !== undefined ? { hint: error.hint } : {}),
  });
}

/** Enforces the time limits of one call, even if the package ignores an abort. */
class Watch {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #total: NodeJS.Timeout;
  readonly #idle: NodeJS.Timeout;
  readonly #abort = (): void => this.#controller.abort(this.#outer.reason);

  constructor(options: AiSdkOptions, outer: AbortSignal) {
    const { idleMs, totalMs } = { ...defaultBounds, ...options.bounds };
    const timeOut = (what: string) => (): void =>
      this.#controller.abort(new ModelError(`${options.id}: ${what}`, { kind: "timeout", provider: options.id }));
    this.#outer = outer;
    this.#total = setTimeout(timeOut(`the call took longer than ${totalMs / 1_000} s`), totalMs);
    this.#idle = setTimeout(timeOut(`nothing came for ${idleMs / 1_000} s`), idleMs);
    outer.addEventListener("abort", this.#abort, { once: true });
    if (outer.aborted) this.#abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  progress(): void {
    this.#idle.refresh();
  }

  within<T>(work: PromiseLike<T>): Promise<T> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const stop = (): void => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
      const settle = (): void => signal.removeEventListener("abort", stop);
      work.then(
        (value) => {
          settle();
          resolve(value);
        },
        (error) => {
          settle();
          reject(signal.aborted ? signal.reason : error);
        },
      );
    });
  }

  close(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#idle);
    this.#outer.removeEventListener("abort", this.#abort);
    this.#controller.abort();
  }
}

function headerOf(headers: unknown, name: string): string | undefined {
  if (!isObject(headers)) return undefined;
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? [];
  return typeof value === "string" ? value : undefined;
}
