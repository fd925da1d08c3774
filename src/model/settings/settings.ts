/**
 * Resolves the providers and their settings from built-in data, the user's files, the environment and flags. Each takes
 * precedence over the one before. A pure function of its inputs. Nothing is read from a project, so that a downloaded
 * folder cannot redirect prompts.
 */
import { TroupeError } from "../../protocol/errors.ts";
import type { Signature } from "../key.ts";
import type { Auth, KnownModel, LocalServer, ProviderDefinition, WireApi } from "../providers/definition.ts";
import { providerList } from "../providers/list.ts";
import type { Bounds } from "../wire/endpoint.ts";
import { CUSTOM_PROVIDER, type ModelVariables, readEnvironment, type SettingsFlags } from "./settings-environment.ts";
import {
  type ConfiguredModel,
  type ConfiguredProvider,
  type ProvidersFile,
  parseProvidersFile,
} from "./settings-file.ts";

export interface SettingsInput {
  readonly environment: ModelVariables;
  /** The user's `providers.json`, if it exists. */
  readonly providersFile?: TextFile;
  /** The file named by `registryPath`. It takes precedence over the environment. */
  readonly registryFile?: TextFile;
  readonly flags?: SettingsFlags;
}

export interface TextFile {
  readonly path: string;
  readonly text: string;
}

export interface ModelSettings {
  /** The configured providers first, then the other built-in ones. */
  readonly providers: readonly ProviderSettings[];
  /** A reference for `resolveModel`. */
  readonly defaultModel?: string;
  /** The provider for model names without a provider. */
  readonly namesGoTo?: string;
  /** Whether to look for servers on this machine when nothing is configured. */
  readonly discovery: boolean;
}

export interface ProviderSettings {
  readonly id: string;
  readonly name: string;
  readonly wire: WireApi;
  readonly baseUrl: string;
  /** True if it supports WebSockets on the responses wire. */
  readonly sockets?: boolean;
  readonly auth: Auth;
  readonly key: Key;
  readonly headers: Readonly<Record<string, string>>;
  /** Present for Azure. */
  readonly azure?: { readonly apiVersion?: string };
  readonly local?: LocalServer;
  readonly listsModels: boolean;
  readonly defaultModel?: string;
  readonly models: readonly KnownModel[];
  readonly maxConcurrency?: number;
  /** False: streams are requested without `stream_options`. */
  readonly streamUsage?: boolean;
  /** Whether the provider searches the web itself (default: decided by its URL). */
  readonly webSearch?: boolean;
  /** Configured time limits of a call. */
  readonly bounds?: Partial<Bounds>;
  /** A package of the user that implements this provider, and its options. */
  readonly npm?: string;
  readonly npmOptions?: Readonly<Record<string, unknown>>;
  /** True if the user configured it, if only by setting its key. */
  readonly configured: boolean;
  /** The step that the user must take before it can be used, such as "set GROQ_API_KEY". */
  readonly missing?: string;
  readonly keyHint?: string;
}

type Key = Signature["key"];

export function readSettings(input: SettingsInput): ModelSettings {
  const { environment, flags = {} } = input;
  const file = input.providersFile && parseProvidersFile(input.providersFile);
  const registry = registryOf(input);
  const fromEnvironment = readEnvironment(environment, flags);
  const wanted = registry?.defaultModel ?? fromEnvironment.defaultModel ?? file?.defaultModel;
  const defaultModel = flags.model === undefined ? wanted : fromEnvironment.defaultModel;

  const layers = [file?.providers, fromEnvironment.providers, registry?.providers];
  const overrides = new Map<string, ConfiguredProvider>();
  for (const layer of layers) {
    for (const [id, provider] of layer ?? []) overrides.set(id, { ...overrides.get(id), ...provider });
  }
  // A base URL given for this call comes first, then the file's providers, then the built-in ones.
  const named = [...overrides.keys()].sort((a, b) => Number(b === CUSTOM_PROVIDER) - Number(a === CUSTOM_PROVIDER));
  const ids = [...new Set([...named, ...providerList.map((definition) => definition.id)])];
  const models = [...(file?.models ?? []), ...(registry?.models ?? [])];
  return {
    providers: ids.map((id) => combine({ id, environment, override: overrides.get(id), models })),
    discovery: !isOn(environment.TROUPE_NO_DISCOVERY),
    ...(defaultModel === undefined ? {} : { defaultModel }),
  };
}

/** Returns the file that `COPILOT_PROVIDERS_CONFIG` names. Returns `undefined` if it is unset or contains JSON. */
export function registryPath(environment: ModelVariables): string | undefined {
  const value = environment.COPILOT_PROVIDERS_CONFIG?.trim();
  return value === undefined || value === "" || value.startsWith("{") ? undefined : value;
}

function registryOf({ environment, registryFile }: SettingsInput): ProvidersFile | undefined {
  const inline = environment.COPILOT_PROVIDERS_CONFIG?.trim();
  if (inline?.startsWith("{")) return parseProvidersFile({ path: "COPILOT_PROVIDERS_CONFIG", text: inline });
  return registryFile && parseProvidersFile(registryFile);
}

interface Parts {
  readonly id: string;
  readonly environment: ModelVariables;
  readonly override: ConfiguredProvider | undefined;
  readonly models: readonly ConfiguredModel[];
}

function combine({ id, environment, override = {}, models }: Parts): ProviderSettings {
  const known = providerList.find((definition) => definition.id === id);
  const azure = known?.azure !== undefined || override.type === "azure";
  const baseUrl = override.baseUrl ?? addressOf(known, environment);
  const { key, auth, missing: missingKey } = signIn({ known, override, environment, azure });
  const missing = baseUrl === "" && override.npm === undefined ? `set ${known?.baseUrlVariable}` : missingKey;
  const apiVersion = override.apiVersion ?? firstSet(environment, known?.azure?.versionVariables ?? []).value;
  const { local, defaultModel, headers } = known ?? {};
  const streamUsage = override.streamUsage ?? known?.streamUsage;
  const chosenDefault = override.defaultModel ?? defaultModel;
  const keySet = key.type !== "none" && known !== undefined && missing === undefined;
  return {
    id,
    name: override.name ?? known?.name ?? id,
    wire: wireOf(override) ?? known?.wire ?? "completions",
    baseUrl: baseUrl.replace(/\/+$/, ""),
    auth,
    key,
    headers: { ...headers, ...override.headers },
    listsModels: known?.listsModels ?? (!azure && override.npm === undefined),
    models: mergeModels(known?.models ?? [], [
      ...(override.models ?? []),
      ...models.filter((model) => model.provider === id),
    ]),
    configured: Object.keys(override).length > 0 || keySet,
    keyHint: keyHint(known, override, id),
    ...(azure ? { azure: apiVersion === undefined ? {} : { apiVersion } } : {}),
    ...(local === undefined ? {} : { local }),
    ...(chosenDefault === undefined ? {} : { defaultModel: chosenDefault }),
    ...(override.maxConcurrency === undefined ? {} : { maxConcurrency: override.maxConcurrency }),
    ...(streamUsage === undefined ? {} : { streamUsage }),
    ...(override.webSearch === undefined ? {} : { webSearch: override.webSearch }),
    ...(override.timeouts === undefined ? {} : { bounds: boundsOf(override.timeouts) }),
    ...(override.npm === undefined ? {} : { npm: override.npm, npmOptions: override.options ?? {} }),
    ...(missing === undefined ? {} : { missing }),
  };
}

function boundsOf(timeouts: NonNullable<ConfiguredProvider["timeouts"]>): Partial<Bounds> {
  const { firstAnswerSeconds, silenceSeconds, totalSeconds } = timeouts;
  return {
    ...(firstAnswerSeconds === undefined ? {} : { connectMs: firstAnswerSeconds * 1000 }),
    ...(silenceSeconds === undefined ? {} : { idleMs: silenceSeconds * 1000 }),
    ...(totalSeconds === undefined ? {} : { totalMs: totalSeconds * 1000 }),
  };
}

function addressOf(known: ProviderDefinition | undefined, environment: ModelVariables): string {
  if (known === undefined) return "";
  const variable = known.baseUrlVariable;
  const value = variable === undefined ? undefined : environment[variable]?.trim();
  if (variable === undefined || value === undefined || value === "") return known.baseUrl;
  if (URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)) return value;
  throw new TroupeError("configuration", `${variable}: "${value}" is not an address`, {
    hint: "Give it as https://host/path.",
  });
}

function signIn(parts: {
  known: ProviderDefinition | undefined;
  override: ConfiguredProvider;
  environment: ModelVariables;
  azure: boolean;
}): { key: Key; auth: Auth; missing?: string } {
  const { known, override, environment, azure } = parts;
  const usual =
    override.auth ?? known?.auth ?? (azure ? "api-key" : wireOf(override) === "anthropic" ? "x-api-key" : "bearer");
  const auth = usual === "none" ? "bearer" : usual;
  if (override.auth === "none") return { key: { type: "none" }, auth: "none" };
  if (override.bearerToken !== undefined)
    return { key: { type: "value", value: override.bearerToken }, auth: "bearer" };
  if (override.apiKey !== undefined) return { key: { type: "value", value: override.apiKey }, auth };
  if (override.apiKeyCommand !== undefined) return { key: { type: "command", command: override.apiKeyCommand }, auth };

  const variables = override.apiKeyVariable === undefined ? (known?.keyVariables ?? []) : [override.apiKeyVariable];
  const found = firstSet(environment, variables);
  if (found.value !== undefined) return { key: { type: "value", value: found.value }, auth };
  const [variable] = variables;
  if (variable === undefined) return { key: { type: "none" }, auth: "none" };
  // A package may find its key by itself.
  if (override.npm !== undefined && override.apiKeyVariable === undefined)
    return { key: { type: "none" }, auth: "none" };
  return { key: { type: "none" }, auth, missing: `set ${variable}` };
}

function keyHint(known: ProviderDefinition | undefined, override: ConfiguredProvider, id: string): string {
  if (override.bearerToken !== undefined || override.apiKey !== undefined) {
    return id === CUSTOM_PROVIDER ? "Check TROUPE_API_KEY." : `Check the key of ${id} in your providers file.`;
  }
  if (override.apiKeyCommand !== undefined) return `Check what the key command of ${id} prints.`;
  const variable = override.apiKeyVariable ?? known?.keyVariables[0];
  if (variable !== undefined) return `Check ${variable}.`;
  return id === CUSTOM_PROVIDER ? "Set TROUPE_API_KEY." : `Give ${id} a key in your providers file.`;
}

function wireOf(override: ConfiguredProvider): WireApi | undefined {
  if (override.type === "anthropic") return "anthropic";
  return override.wireApi ?? (override.type === undefined ? undefined : "completions");
}

function mergeModels(known: readonly KnownModel[], given: readonly ConfiguredModel[]): readonly KnownModel[] {
  const models = new Map(known.map((model) => [model.name, model]));
  for (const { provider: _, ...model } of given) {
    const before = models.get(model.name);
    models.set(model.name, { ...before, ...model, price: model.price ?? before?.price ?? null });
  }
  return [...models.values()];
}

function firstSet(environment: ModelVariables, variables: readonly string[]): { value: string | undefined } {
  for (const variable of variables) {
    const value = environment[variable]?.trim();
    if (value !== undefined && value !== "") return { value };
  }
  return { value: undefined };
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false", "no", "off"].includes(value.trim().toLowerCase());
}
