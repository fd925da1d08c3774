/** Changes keys in the text of `providers.json`. */
import { isObject, type Json, parseJson } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { TextFile } from "./settings.ts";
import { parseProvidersFile } from "./settings-file.ts";

type JsonObject = Record<string, Json>;

/**
 * Returns the text of the file with the provider's key. Everything else stays. Other ways to find the key of this
 * provider are removed, because the given key is the one that was tested. Throws if the file is invalid.
 */
export function withProviderKey(file: TextFile, providerId: string, apiKey: string): string {
  return withProviders(file, (providers) =>
    Array.isArray(providers)
      ? changedList(providers, providerId, apiKey)
      : { ...providers, [providerId]: withKey(providers[providerId], apiKey) },
  );
}

/** Returns the text of the file without the keys of these providers. Throws if the file is invalid. */
export function withoutProviderKeys(file: TextFile, providerIds: readonly string[]): string {
  const isListed = (name: Json | undefined): boolean => typeof name === "string" && providerIds.includes(name);
  return withProviders(file, (providers) =>
    Array.isArray(providers)
      ? providers.map((entry) => (isObject(entry) && isListed(entry.name) ? withoutKey(entry) : entry))
      : Object.fromEntries(
          Object.entries(providers).map(([id, entry]) => [id, isListed(id) ? withoutKey(entry) : entry]),
        ),
  );
}

/** Returns the names of the providers that have a key in the file. Throws if the file is invalid. */
export function storedKeys(file: TextFile): string[] {
  return [...parseProvidersFile(file).providers].flatMap(([id, { apiKey }]) => (apiKey === undefined ? [] : id));
}

function withProviders(file: TextFile, change: (providers: Json[] | JsonObject) => Json): string {
  parseProvidersFile(file);
  const parsed = parseJson(file.text);
  const whole = (parsed.ok && isObject(parsed.value) ? parsed.value : {}) as JsonObject;
  const { providers = {} } = whole;
  const next = change(providers as Json[] | JsonObject);
  const text = `${JSON.stringify({ ...whole, providers: next }, null, 2)}\n`;
  parseProvidersFile({ path: file.path, text });
  return text;
}

function changedList(list: readonly Json[], name: string, apiKey: string): Json[] {
  const isIt = (entry: Json): boolean => isObject(entry) && entry.name === name;
  if (!list.some(isIt)) return [...list, { name, apiKey }];
  return list.map((entry) => (isIt(entry) ? withKey(entry, apiKey) : entry));
}

function withKey(entry: Json | undefined, apiKey: string): JsonObject {
  const {
    apiKeyVariable: _,
    apiKeyCommand: __,
    bearerToken: ___,
    ...rest
  } = (isObject(entry) ? entry : {}) as JsonObject;
  return { ...rest, apiKey };
}

function withoutKey(entry: Json): Json {
  const { apiKey: _, ...rest } = (isObject(entry) ? entry : {}) as JsonObject;
  return rest;
}

/** Returns the key without surrounding white space. Throws if no header could carry it. */
export function checkedKey(apiKey: string): string {
  const key = apiKey.trim();
  if (/^[\u0021-\u007e]{1,4096}$/.test(key)) return key;
  throw new TroupeError("usage", key === "" ? "The key is empty." : "The key has characters that keys cannot have.", {
    hint: "Copy it again from the provider's page.",
  });
}
