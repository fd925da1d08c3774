/**
 * Providers and models that a program brings for one session: one for the whole session, or a registry beside what is
 * configured. They live as long as the session; nobody is asked anything until the first request, and no key is kept.
 */
import * as z from "zod";
import { TroupeError } from "../protocol/errors.ts";
import { limitsOf, overridden } from "./capabilities.ts";
import { isAddress } from "./is-address.ts";
import type { Signature } from "./key.ts";
import { ModelError } from "./model-error.ts";
import { defineProvider, type Provider } from "./provider.ts";
import type { Auth, KnownModel, WireApi } from "./providers/definition.ts";
import type { ProviderSettings, Settings } from "./settings/settings.ts";

const tokens = z.int().positive();

const place = {
  type: z.enum(["openai", "azure", "anthropic"]).optional(),
  wireApi: z.enum(["completions", "responses"]).optional(),
  /** How the responses wire travels, where the client that carries the requests opens WebSockets. */
  transport: z.enum(["http", "websockets"]).optional(),
  baseUrl: z.string().max(2048),
  apiKey: z.string().optional(),
  /** Wins over `apiKey`. */
  bearerToken: z.string().optional(),
  /** The program is asked for a token before each request; wins over both. */
  hasBearerTokenProvider: z.boolean().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  azure: z.object({ apiVersion: z.string().optional() }).optional(),
};

/** A provider for all of a session. */
export const GivenProvider = z.object({
  ...place,
  /** The model, where the session names none. */
  modelId: z.string().optional(),
  /** What the provider calls it, when that differs. */
  wireModel: z.string().optional(),
  maxPromptTokens: tokens.optional(),
  maxOutputTokens: tokens.optional(),
});
export type GivenProvider = z.infer<typeof GivenProvider>;

/** One of a registry; its models are chosen as `name/id`. */
export const NamedProvider = z.object({
  ...place,
  name: z
    .string()
    .min(1)
    .regex(/^[^/]+$/, "a provider's name has no slash"),
});
export type NamedProvider = z.infer<typeof NamedProvider>;

/** What a model can and takes; only what is given replaces what is known. */
export const ModelCapabilities = z.object({
  supports: z.object({ vision: z.boolean().optional(), reasoningEffort: z.boolean().optional() }).optional(),
  limits: z
    .object({
      max_prompt_tokens: tokens.optional(),
      max_output_tokens: tokens.optional(),
      max_context_window_tokens: tokens.optional(),
    })
    .optional(),
});
export type ModelCapabilities = z.infer<typeof ModelCapabilities>;

export const GivenModel = z.object({
  id: z.string().min(1),
  provider: z.string(),
  wireModel: z.string().optional(),
  modelId: z.string().optional(),
  name: z.string().optional(),
  maxPromptTokens: tokens.optional(),
  maxContextWindowTokens: tokens.optional(),
  maxOutputTokens: tokens.optional(),
  capabilities: ModelCapabilities.optional(),
});
export type GivenModel = z.infer<typeof GivenModel>;

export interface GivenProviders {
  readonly provider?: GivenProvider | undefined;
  readonly providers?: readonly NamedProvider[] | undefined;
  readonly models?: readonly GivenModel[] | undefined;
  /** Asked before each request to a provider that says so; nothing of it is kept. */
  readonly getToken?: ((providerName: string) => Promise<string>) | undefined;
}

/** How the provider of a whole session is called where a name is needed. */
const WHOLE_SESSION = "default";

/** Stands where a model will be; who speaks to it is told what is missing. */
export function namelessModel(): { provider: Provider; providerId: string; model: string } {
  const provider = defineProvider({
    id: WHOLE_SESSION,
    // biome-ignore lint/correctness/useYield: it has nothing to say
    async *stream() {
      throw new ModelError("The session has a provider, and no model.", {
        kind: "request",
        provider: WHOLE_SESSION,
        hint: "Name one with the session (`model`), or with the provider (`modelId`).",
      });
    },
  });
  return { provider, providerId: WHOLE_SESSION, model: "" };
}

/** Stands in for a model of a place that does not say now which it has; who speaks to it is told why. */
export function absentModel(why: Error, wanted = ""): { provider: Provider; providerId: string; model: string } {
  const provider = defineProvider({
    id: WHOLE_SESSION,
    // biome-ignore lint/correctness/useYield: it has nothing to say
    async *stream() {
      throw new ModelError(`The models cannot be listed: ${why.message}.`, {
        kind: "server",
        provider: WHOLE_SESSION,
        // The list was asked for just before.
        retryable: false,
        hint: "Try again later, or name a provider with the session.",
        cause: why,
      });
    },
  });
  return { provider, providerId: WHOLE_SESSION, model: wanted };
}

/** What is configured, with what the session brings in front of it or in its place. Throws what to put right. */
export function settingsWith(known: Settings, given: GivenProviders, sessionModel: string | undefined): Settings {
  const { provider, providers = [], models = [] } = given;
  if (provider && providers.length + models.length > 0) {
    throw new TroupeError(
      "usage",
      "A session has either one provider or a registry of providers and models, not both.",
    );
  }
  if (provider) return wholeSession(provider, given, sessionModel);
  if (providers.length + models.length === 0) return known;
  const names = new Set(providers.map(({ name }) => name));
  if (names.size < providers.length) throw new TroupeError("usage", "Two providers of a session have the same name.");
  const lost = models.find(({ provider: of }) => !names.has(of) && !known.providers.some(({ id }) => id === of));
  if (lost) {
    throw new TroupeError(
      "usage",
      `The model "${lost.id}" belongs to the provider "${lost.provider}", which is not given.`,
    );
  }
  const own = providers.map((entry) => registered(entry, given));
  const others = known.providers
    .filter(({ id }) => !names.has(id))
    .map((entry) => ({ ...entry, models: [...modelsOf(entry.id, models), ...entry.models] }));
  return { ...known, providers: [...own, ...others] };
}

function wholeSession(provider: GivenProvider, given: GivenProviders, sessionModel: string | undefined): Settings {
  const { modelId, wireModel, maxPromptTokens, maxOutputTokens } = provider;
  const name = sessionModel ?? modelId;
  const model: KnownModel | undefined =
    name === undefined
      ? undefined
      : {
          name,
          id: name,
          wireName: wireModel ?? modelId ?? name,
          price: null,
          ...limitsOf({ maxPromptTokens, maxOutputTokens }),
        };
  const settings = settingsOf(WHOLE_SESSION, provider, given);
  return {
    providers: [{ ...settings, models: model ? [model] : [], ...(name !== undefined && { defaultModel: name }) }],
    discovery: false,
    namesGoTo: WHOLE_SESSION,
  };
}

function registered(provider: NamedProvider, given: GivenProviders): ProviderSettings {
  const models = modelsOf(provider.name, given.models ?? []);
  const [first] = models;
  const settings = { ...settingsOf(provider.name, provider, given), models };
  return first === undefined ? settings : { ...settings, defaultModel: first.name };
}

function modelsOf(provider: string, models: readonly GivenModel[]): KnownModel[] {
  return models
    .filter((model) => model.provider === provider)
    .map(({ id, name, wireModel, modelId, capabilities, ...limits }) => ({
      name: id,
      id: `${provider}/${id}`,
      wireName: wireModel ?? modelId ?? id,
      price: null,
      ...(name !== undefined && { displayName: name }),
      ...limitsOf(limits),
      ...overridden(capabilities),
    }));
}

function settingsOf(id: string, given: GivenProvider | NamedProvider, { getToken }: GivenProviders): ProviderSettings {
  const { type = "openai", baseUrl, headers = {}, azure } = given;
  if (!isAddress(baseUrl)) {
    throw new TroupeError("usage", `The base URL of the provider "${id}" is not an address.`, {
      hint: "Give it as https://host/v1, without a user name or password.",
    });
  }
  return {
    id,
    name: new URL(baseUrl).host,
    wire: wireOf(given),
    sockets: given.transport === "websockets",
    baseUrl: baseUrl.replace(/\/+$/, ""),
    ...signIn(id, given, getToken),
    headers,
    // Nobody is asked before there is something to ask for.
    listsModels: false,
    models: [],
    configured: true,
    keyHint: "Check the key that the program gave for this provider.",
    ...(type === "azure" && { azure: azure?.apiVersion === undefined ? {} : { apiVersion: azure.apiVersion } }),
  };
}

function wireOf({ type, wireApi }: GivenProvider | NamedProvider): WireApi {
  return type === "anthropic" ? "anthropic" : (wireApi ?? "completions");
}

function signIn(
  id: string,
  given: GivenProvider | NamedProvider,
  getToken: GivenProviders["getToken"],
): { key: Signature["key"]; auth: Auth } {
  const { type, apiKey, bearerToken, hasBearerTokenProvider } = given;
  if (hasBearerTokenProvider) {
    if (!getToken) throw new TroupeError("usage", `The provider "${id}" gets its tokens from nobody.`);
    return { key: { type: "callback", read: () => getToken(id) }, auth: "bearer" };
  }
  if (bearerToken) return { key: { type: "value", value: bearerToken }, auth: "bearer" };
  if (!apiKey) return { key: { type: "none" }, auth: "none" };
  const auth = type === "anthropic" ? "x-api-key" : type === "azure" ? "api-key" : "bearer";
  return { key: { type: "value", value: apiKey }, auth };
}
