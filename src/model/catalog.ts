/**
 * Resolves a model name to a model that answers. A named model is used as named, or an error says what to do. There is
 * no fallback to another provider or model.
 */
import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { type CatalogDependencies, connect } from "./connect.ts";
import { discoverLocal, listServed, type Served, type ServedModel } from "./discover.ts";
import { signedHeaders } from "./key.ts";
import { withNearestName } from "./nearest-name.ts";
import { free, type Price } from "./prices.ts";
import type { Provider } from "./provider.ts";
import type { KnownModel } from "./providers/definition.ts";
import type { ModelSettings, ProviderSettings } from "./settings/settings.ts";
import { CUSTOM_PROVIDER } from "./settings/settings-environment.ts";
import { searchOf } from "./web-search.ts";

export interface ResolvedModel {
  /** The wire without retries; the caller adds them. */
  readonly provider: Provider;
  readonly providerId: string;
  /** The provider's name for the model. */
  readonly model: string;
  readonly displayName: string;
  /** The session's name for the model, if it differs from the provider's. */
  readonly id?: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** False: the model does not accept images. */
  readonly vision?: boolean;
  /** Set when the provider searches the web itself: the base URL of such requests. */
  readonly searchAddress?: string;
  /** `null` if unknown. */
  readonly price: Price | null;
  readonly maxConcurrency?: number;
  /** For the user: the model and its provider. */
  readonly label: string;
  /** How requests are sent; absent for models in this process. */
  readonly route?: ModelRoute;
}

/** How requests to a model are sent, in the terms of `assistant.usage`. */
export interface ModelRoute {
  /** False only for models served by GitHub. */
  readonly isByok: boolean;
  /** Absent if a package of the user connects to the provider. */
  readonly apiEndpoint?: "/chat/completions" | "/v1/messages" | "/responses";
  /** Absent if WebSockets are tried first: then either may be used. */
  readonly transport?: "http";
}

export const UNDERSTUDY = "understudy";

/** `wanted` is `provider/model`, a model name or `understudy`. Without it, the configured default is used. */
export async function resolveModel(
  settings: ModelSettings,
  wanted: string | undefined,
  dependencies: CatalogDependencies = {},
): Promise<ResolvedModel> {
  const reference = (wanted ?? settings.defaultModel)?.trim();
  if (reference === undefined || reference === "") return resolveUnasked(settings, dependencies);
  if (reference === UNDERSTUDY) return understudyModel("built in");
  const { provider, name } = findProvider(settings, reference);
  mustBeUsable(provider, name);
  return open(provider, await findModel({ provider, name }, dependencies), dependencies);
}

/** Resolves the default model: the first configured provider, then a server on this machine, then the understudy. */
async function resolveUnasked(settings: ModelSettings, dependencies: CatalogDependencies): Promise<ResolvedModel> {
  const configured = settings.providers.filter((provider) => provider.configured);
  const [usable] = configured.filter((provider) => provider.missing === undefined);
  if (usable !== undefined) return open(usable, await defaultModelOf(usable, dependencies), dependencies);
  const [unusable] = configured;
  if (unusable !== undefined) mustBeUsable(unusable, "…");
  const found = settings.discovery ? await discoverLocal(settings.providers, dependencies) : undefined;
  const [model] = found?.models ?? [];
  if (found === undefined || model === undefined) return understudyModel("built in, because no model is configured");
  return open(found.provider, knownModelOf(found.provider, model), dependencies);
}

async function defaultModelOf(provider: ProviderSettings, dependencies: CatalogDependencies): Promise<KnownModel> {
  const name = provider.defaultModel ?? (provider.models.length === 1 ? provider.models[0]?.name : undefined);
  if (name !== undefined) return modelNamed(provider, name) ?? { name, price: priceOf(provider) };
  const served = await ask(provider, dependencies);
  const models = served.type === "models" ? served.models : [];
  const [first] = models;
  if (first !== undefined && (models.length === 1 || provider.local !== undefined))
    return knownModelOf(provider, first);
  const names = models.slice(0, 5).map((model) => model.name);
  throw new TroupeError("configuration", `${provider.name} is configured, but none of its models is chosen`, {
    hint: `Name one, as ${provider.id}/${names[0] ?? "model"}${names.length > 1 ? `; it has ${names.join(", ")}` : ""}.`,
  });
}

interface Wanted {
  readonly provider: ProviderSettings;
  readonly name: string;
}

function findProvider({ providers, namesGoTo = CUSTOM_PROVIDER }: ModelSettings, reference: string): Wanted {
  const slash = reference.indexOf("/");
  const named = slash > 0 ? providers.find((provider) => provider.id === reference.slice(0, slash)) : undefined;
  if (named !== undefined && slash < reference.length - 1) {
    // "openrouter/auto" is the full name of a model of openrouter.
    const whole = modelNamed(named, reference)?.name;
    return { provider: named, name: whole ?? reference.slice(slash + 1) };
  }

  const taker = providers.find((provider) => provider.id === namesGoTo);
  if (taker !== undefined) return { provider: taker, name: reference };
  const offering = providers.filter((provider) => modelNamed(provider, reference) !== undefined);
  const configured = providers.filter((provider) => provider.configured);
  const candidates = offering.filter((provider) => provider.configured);
  const [candidate, second] = candidates;
  if (candidate !== undefined && second !== undefined) {
    const references = candidates.map((provider) => `${provider.id}/${reference}`);
    throw new TroupeError("configuration", `"${reference}" is offered by several providers`, {
      hint: `Say which: ${references.join(" or ")}.`,
    });
  }
  const chosen = candidate ?? offering[0] ?? (configured.length === 1 ? configured[0] : undefined);
  if (chosen !== undefined) return { provider: chosen, name: reference };
  throw unknown(reference, suggestions(providers, reference));
}

function mustBeUsable(provider: ProviderSettings, name: string): void {
  if (provider.missing === undefined) return;
  const verb = provider.missing.replace(/^set /, "");
  throw new TroupeError("configuration", `${provider.id}/${name} needs ${verb}, which is not set`, {
    hint: `Set ${verb}, or give ${provider.id} a key in your providers file.`,
  });
}

/**
 * Accepts a name without checking it, so that a start costs no extra request. A provider that does not know the name
 * fails the first call, and `withNearestName` then adds a suggestion. A server on this machine is queried first: it may
 * not be running, and it knows its context size best.
 */
async function findModel({ provider, name }: Wanted, dependencies: CatalogDependencies): Promise<KnownModel> {
  const listed = modelNamed(provider, name);
  if (provider.local === undefined) return listed ?? { name, price: priceOf(provider) };
  if (listed !== undefined && !needsWindow(provider, listed)) return listed;
  const served = await ask(provider, dependencies);
  if (served.type === "unavailable") throw notRunning(provider, name);
  const models = served.type === "models" ? served.models : [];
  const match = models.find((model) => model.name === name || model.name === `${name}:latest`);
  if (match !== undefined) return { ...knownModelOf(provider, match), ...listed, name };
  if (listed !== undefined || models.length === 0) return listed ?? { name, price: priceOf(provider) };
  const names = models.map((model) => `${provider.id}/${model.name}`);
  throw unknown(`${provider.id}/${name}`, nearest(`${provider.id}/${name}`, names));
}

function notRunning(provider: ProviderSettings, name: string): TroupeError {
  const { host } = new URL(provider.baseUrl);
  const message = `${provider.id}/${name} needs ${provider.name}, and no server answers at ${host}`;
  return new TroupeError("configuration", message, { hint: `Start ${provider.name}, or choose another model.` });
}

/** A local server knows best how much context it gives a model. */
function needsWindow(provider: ProviderSettings, model: KnownModel): boolean {
  return provider.local !== undefined && model.contextWindow === undefined;
}

function unknown(reference: string, guess: string | undefined): TroupeError {
  return new TroupeError("configuration", `There is no model "${reference}"`, {
    hint: guess === undefined ? "Run `troupe models` to list the models." : `Did you mean ${guess}?`,
  });
}

function suggestions(providers: readonly ProviderSettings[], wanted: string): string | undefined {
  const references = new Map<string, string>();
  for (const provider of providers) {
    for (const { name } of provider.models) {
      const reference = `${provider.id}/${name}`;
      references.set(reference, reference);
      if (!references.has(name)) references.set(name, reference);
    }
  }
  return references.get(wanted) ?? references.get(nearest(wanted, references.keys()) ?? "");
}

/** Finds a model by its name here, or by the provider's name, which logs contain. */
function modelNamed({ models }: ProviderSettings, name: string): KnownModel | undefined {
  return models.find((model) => model.name === name) ?? models.find((model) => model.wireName === name);
}

function knownModelOf(provider: ProviderSettings, served: ServedModel): KnownModel {
  return { price: priceOf(provider), ...served, ...modelNamed(provider, served.name) };
}

function priceOf(provider: ProviderSettings): Price | null {
  return provider.local === undefined ? null : free;
}

function ask(provider: ProviderSettings, { fetch, stamp }: CatalogDependencies): Promise<Served> {
  if (!provider.listsModels) return Promise.resolve({ type: "unavailable" });
  const headers = signedHeaders(provider, stamp);
  return listServed(provider, { headers, withinMs: 1_000, ...(fetch === undefined ? {} : { fetch }) });
}

async function open(
  provider: ProviderSettings,
  model: KnownModel,
  dependencies: CatalogDependencies,
): Promise<ResolvedModel> {
  const wireName = model.wireName ?? model.name;
  const { wire = provider.wire, sockets = provider.sockets ?? false } = model;
  const effective = { ...provider, wire, sockets };
  const displayName = model.displayName ?? model.name;
  return {
    provider: withNearestName(await connect(effective, wireName, dependencies), () => namesOf(provider, dependencies)),
    providerId: provider.id,
    model: wireName,
    displayName,
    price: model.price,
    label: `${displayName} (${provider.name})`,
    route: routeOf(effective, dependencies),
    ...(model.id === undefined ? {} : { id: model.id }),
    ...(model.vision === undefined ? {} : { vision: model.vision }),
    ...(model.contextWindow === undefined ? {} : { contextWindow: model.contextWindow }),
    ...(model.maxOutputTokens === undefined ? {} : { maxOutputTokens: model.maxOutputTokens }),
    ...(provider.maxConcurrency === undefined ? {} : { maxConcurrency: provider.maxConcurrency }),
    ...(searchOf(effective) === undefined ? {} : { searchAddress: provider.baseUrl }),
  };
}

const endpoints = { completions: "/chat/completions", responses: "/responses", anthropic: "/v1/messages" } as const;

function routeOf({ id, npm, wire, sockets }: ProviderSettings, { openSocket }: CatalogDependencies): ModelRoute {
  const isByok = id !== "github";
  if (npm !== undefined) return { isByok };
  const triesSockets = openSocket !== undefined && sockets === true && wire === "responses";
  return { isByok, apiEndpoint: endpoints[wire], ...(!triesSockets && { transport: "http" }) };
}

async function namesOf(provider: ProviderSettings, dependencies: CatalogDependencies): Promise<string[]> {
  const served = await ask(provider, dependencies);
  const models = served.type === "models" ? served.models : [];
  return [...models, ...provider.models].map((model) => model.name);
}

async function understudyModel(why: string): Promise<ResolvedModel> {
  const { understudy } = await import("./understudy/understudy.ts");
  return {
    provider: understudy(),
    providerId: UNDERSTUDY,
    model: UNDERSTUDY,
    displayName: UNDERSTUDY,
    price: free,
    label: `understudy (${why})`,
  };
}
