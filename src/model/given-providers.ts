/**
 * Providers and models that a host program gives to one session: one for the whole session, or a registry in addition
 * to the settings. They exist as long as the session. No request is sent before the first prompt, and no key is stored.
 */

import * as z from "zod";
import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import { limitsOf, overridesOf } from "./capabilities.ts";
import { isAddress } from "./is-address.ts";
import type { Signature } from "./key.ts";
import { ModelError } from "./model-error.ts";
import { defineProvider, type Provider } from "./provider.ts";
import type { Auth, KnownModel, WireApi } from "./providers/definition.ts";
import type { ModelSettings, ProviderSettings } from "./settings/settings.ts";

const tokens = z.int().positive();

const endpointFields = {
  type: z.enum(["openai", "azure", "anthropic"]).optional(),
  wireApi: z.enum(["completions", "responses"]).optional(),
  /** How the responses wire is sent, if the client that carries the requests opens WebSockets. */
  transport: z.enum(["http", "websockets"]).optional(),
  baseUrl: z.string().max(2048),
  apiKey: z.string().optional(),
  /** Takes precedence over `apiKey`. */
  bearerToken: z.string().optional(),
  /** The program is asked for a token before each request. Takes precedence over both. */
  hasBearerTokenProvider: z.boolean().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  azure: z.object({ apiVersion: z.string().optional() }).optional(),
};

/** A provider for the whole session. */
export const GivenProvider = z.object({
  ...endpointFields,
  /** The model, if the session names none. */
  modelId: z.string().optional(),
  /** The provider's name for the model, if it differs. */
  wireModel: z.string().optional(),
  maxPromptTokens: tokens.optional(),
  maxOutputTokens: tokens.optional(),
});
export type GivenProvider = z.infer<typeof GivenProvider>;

/** A provider of a registry. Its models are selected as `name/id`. */
export const NamedProvider = z.object({
  ...endpointFields,
  name: z
    .string()
    .min(1)
    .regex(/^[^/]+$/, "a provider's name must not contain a slash"),
});
export type NamedProvider = z.infer<typeof NamedProvider>;

/** A model's capabilities and limits. Only given fields override known ones. */
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
  /** Called before each request to a provider with `hasBearerTokenProvider`. The token is not stored. */
  readonly getToken?: ((providerName: string) => Promise<string>) | undefined;
}

/** The id of the provider for a whole session. */
const WHOLE_SESSION = "default";

/** Returns a placeholder for a session without a model. A call to it fails and says what is missing. */
export function namelessModel(): { provider: Provider; providerId: string; model: string } {
  const provider = defineProvider({
    id: WHOLE_SESSION,
    // biome-ignore lint/correctness/useYield: it has nothing to say
    async *stream() {
      throw new ModelError("The session has a provider but no model.", {
        kind: "request",
        provider: WHOLE_SESSION,
        hint: "Name one with the session (`model`), or with the provider (`modelId`).",
      });
    },
  });
  return { provider, providerId: WHOLE_SESSION, model: "" };
}

/** Returns a placeholder for when models cannot be listed. A call to it fails with the reason. */
export function absentModel(why: Error, wanted = ""): { provider: Provider; providerId: string; model: string } {
  const provider = defineProvider({
    id: WHOLE_SESSION,
    // biome-ignore lint/correctness/useYield: it has nothing to say
    async *stream() {
      throw new ModelError(`The models cannot be listed: ${why.message}.`, {
        kind: "server",
        provider: WHOLE_SESSION,
        // The list was requested just before.
        retryable: false,
        hint: "Try again later, or name a provider with the session.",
        cause: why,
      });
    },
  });
  return { provider, providerId: WHOLE_SESSION, model: wanted };
}

/** Returns a placeholder for a provider whose key was removed. A call to it fails and says so. */
export function keyless(providerId: string): Provider {
  return defineProvider({
    id: providerId,
    // biome-ignore lint/correctness/useYield: it has nothing to say
    async *stream() {
      throw new ModelError(`${providerId} has no key any more.`, {
        kind: "authentication",
        provider: providerId,
        retryable: false,
        hint: "Run `troupe login`, sign in again, or choose another model.",
      });
    },
  });
}

/**
 * Returns the settings with the session's providers first, or with only the session's one provider. Throws a usage
 * error for invalid input.
 */
export function settingsWith(
  known: ModelSettings,
  given: GivenProviders,
  sessionModel: string | undefined,
): ModelSettings {
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
  const own = providers.map((entry) => providerSettingsOf(entry, given));
  const others = known.providers
    .filter(({ id }) => !names.has(id))
    .map((entry) => ({ ...entry, models: [...modelsOf(entry.id, models), ...entry.models] }));
  return { ...known, providers: [...own, ...others] };
}

function wholeSession(provider: GivenProvider, given: GivenProviders, sessionModel: string | undefined): ModelSettings {
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
    providers: [{ ...settings, models: model ? [model] : [], ...defined({ defaultModel: name }) }],
    discovery: false,
    namesGoTo: WHOLE_SESSION,
  };
}

function providerSettingsOf(provider: NamedProvider, given: GivenProviders): ProviderSettings {
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
      ...defined({ displayName: name }),
      ...limitsOf(limits),
      ...overridesOf(capabilities),
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
    // Sends no request before the first prompt.
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
    if (!getToken) throw new TroupeError("usage", `The provider "${id}" has no source of tokens.`);
    return { key: { type: "callback", read: () => getToken(id) }, auth: "bearer" };
  }
  if (bearerToken) return { key: { type: "value", value: bearerToken }, auth: "bearer" };
  if (!apiKey) return { key: { type: "none" }, auth: "none" };
  const auth = type === "anthropic" ? "x-api-key" : type === "azure" ? "api-key" : "bearer";
  return { key: { type: "value", value: apiKey }, auth };
}
