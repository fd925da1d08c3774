/** Parses the user's `providers.json`. Errors name the file and the field. */
import type * as z from "zod";
import { isObject, jsonErrorPosition, parseJson } from "../../lib/json.ts";
import { nearest } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { KnownModel } from "../providers/definition.ts";
import { providerList } from "../providers/list.ts";
import { File, type ModelEntry, modelFields, Price, Provider, type ProviderEntry } from "./settings-file-schema.ts";

export type ConfiguredModel = KnownModel & { readonly provider?: string };

export type ConfiguredProvider = Omit<Partial<ProviderEntry>, "models"> & {
  readonly models?: readonly ConfiguredModel[];
};

export interface ProvidersFile {
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly models: readonly ConfiguredModel[];
  readonly defaultModel?: string;
}

export function parseProvidersFile({ path, text }: { path: string; text: string }): ProvidersFile {
  const json = parseJson(text);
  if (!json.ok) throw new TroupeError("configuration", `${path} is not JSON: ${json.error}${jsonErrorPosition(text)}`);
  const parsed = File.safeParse(withoutLists(json.value));
  if (!parsed.success) throw problem(path, parsed.error.issues[0]);

  const { defaultModel } = parsed.data;
  const providers = new Map<string, ConfiguredProvider>();
  for (const [id, { models, ...provider }] of Object.entries(parsed.data.providers)) {
    checkId(path, id);
    if (
      provider.baseUrl === undefined &&
      provider.npm === undefined &&
      !providerList.some((known) => known.id === id)
    ) {
      throw new TroupeError("configuration", `${path}: providers.${id}.baseUrl: is missing`, {
        hint: `"${id}" is not one of the built-in providers, so it needs an address.`,
      });
    }
    providers.set(id, models === undefined ? provider : { ...provider, models: Object.entries(models).map(toModel) });
  }
  const models = Object.entries(parsed.data.models).map(toModel);
  return { providers, models, ...(defaultModel === undefined ? {} : { defaultModel }) };
}

function toModel([name, entry]: [string, ModelEntry]): ConfiguredModel {
  const { wireModel, price, ...rest } = entry;
  return { name, ...rest, price: price ?? null, ...(wireModel === undefined ? {} : { wireName: wireModel }) };
}

/**
 * Converts lists to objects: clients write providers and models as lists with the name inside, here the name is the
 * key.
 */
function withoutLists(value: unknown): unknown {
  if (!isObject(value)) return value;
  const providers = Array.isArray(value.providers) ? byName(value.providers, "name", toProviderEntry) : value.providers;
  const models = Array.isArray(value.models) ? byName(value.models, "id", toModelEntry) : value.models;
  return { ...value, ...(providers === undefined ? {} : { providers }), ...(models === undefined ? {} : { models }) };
}

function byName(list: readonly unknown[], key: string, convert: (entry: Record<string, unknown>) => object): unknown {
  const entries = list.map((entry, index) => {
    if (!isObject(entry)) return [String(index), entry];
    const { [key]: name, ...rest } = entry;
    return [typeof name === "string" ? name : String(index), convert(rest)];
  });
  return Object.fromEntries(entries);
}

function toProviderEntry({ azure, transport: _, ...entry }: Record<string, unknown>): object {
  const version = isObject(azure) ? azure.apiVersion : undefined;
  return { ...entry, ...(version === undefined ? {} : { apiVersion: version }) };
}

function toModelEntry(entry: Record<string, unknown>): object {
  const {
    name,
    modelId: _,
    capabilities: __,
    maxPromptTokens: prompt,
    maxContextWindowTokens: window,
    ...rest
  } = entry;
  const output = typeof entry.maxOutputTokens === "number" ? entry.maxOutputTokens : 0;
  const contextWindow = window ?? (typeof prompt === "number" ? prompt + output : undefined);
  return {
    ...rest,
    ...(name === undefined ? {} : { displayName: name }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
  };
}

function checkId(path: string, id: string): void {
  if (/^[a-z0-9][a-z0-9._-]*$/i.test(id) && id !== "understudy") return;
  throw new TroupeError("configuration", `${path}: providers: "${id}" cannot be the name of a provider`, {
    hint: id === "understudy" ? "That name is taken." : "Use letters, digits, dots and dashes.",
  });
}

function problem(path: string, issue: z.core.$ZodIssue | undefined): TroupeError {
  if (issue === undefined) return new TroupeError("configuration", `${path}: not as expected`);
  const field = issue.path.join(".") || "(the whole file)";
  if (issue.code !== "unrecognized_keys")
    return new TroupeError("configuration", `${path}: ${field}: ${issue.message}`);
  const [unknown = ""] = issue.keys;
  const known = [
    ...Object.keys(Provider.shape),
    ...Object.keys(File.shape),
    ...Object.keys(modelFields),
    ...Object.keys(Price.shape),
  ];
  const guess = nearest(unknown, known);
  const key = issue.path.length === 0 ? unknown : `${field}.${unknown}`;
  return new TroupeError("configuration", `${path}: ${key}: there is no such setting`, {
    ...(guess === undefined ? {} : { hint: `Did you mean "${guess}"?` }),
  });
}
