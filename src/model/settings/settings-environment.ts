/** Reads a provider and a model from environment variables or flags alone, for one server with a known wire. */
import { isObject, parseJson } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { isAddress } from "../is-address.ts";
import { splitCommand } from "../key.ts";
import type { WireApi } from "../providers/definition.ts";
import { providerList } from "../providers/list.ts";
import type { ConfiguredProvider } from "./settings-file.ts";

export type ModelVariables = Readonly<Record<string, string | undefined>>;

export interface SettingsFlags {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly wireApi?: string;
  readonly model?: string;
}

/** The id of the provider that `TROUPE_BASE_URL` configures. */
export const CUSTOM_PROVIDER = "custom";

export interface EnvironmentSettings {
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly defaultModel?: string;
}

export function readEnvironment(environment: ModelVariables, flags: SettingsFlags): EnvironmentSettings {
  const read = reader(environment);
  const baseUrl = valueFrom("--base-url", flags.baseUrl) ?? read("TROUPE_BASE_URL", "COPILOT_PROVIDER_BASE_URL");
  const apiKey = valueFrom("--api-key", flags.apiKey) ?? read("TROUPE_API_KEY", "COPILOT_PROVIDER_API_KEY");
  const ambient = read("TROUPE_MODEL", "COPILOT_MODEL", "COPILOT_PROVIDER_MODEL_ID");
  const model = valueFrom("--model", flags.model) ?? ambient;
  if (baseUrl === undefined) return withoutEndpoint(apiKey, model?.value);
  if (!isAddress(baseUrl.value)) {
    throw new TroupeError("configuration", `${baseUrl.from}: "${withoutSecrets(baseUrl.value)}" is not an address`, {
      hint: "Give it as https://host/v1, without a user name or password.",
    });
  }

  const provider: ConfiguredProvider = {
    name: new URL(baseUrl.value).host,
    baseUrl: baseUrl.value,
    ...kindOf(read, flags),
    ...keyOf(read, apiKey?.value),
    ...optional("headers", headersOf(read("COPILOT_PROVIDER_HEADERS"))),
    ...optional("apiVersion", read("COPILOT_PROVIDER_AZURE_API_VERSION")?.value),
    ...modelOf(read, ambient?.value),
  };
  const reference =
    model === undefined || isReference(model.value) ? model?.value : `${CUSTOM_PROVIDER}/${model.value}`;
  return { providers: new Map([[CUSTOM_PROVIDER, provider]]), ...optional("defaultModel", reference) };

  /** At a custom base URL a model may have any name, so only a name that came with the URL is used unchanged. */
  function isReference(value: string): boolean {
    return (
      flags.model !== undefined && providerList.some(({ id }) => value.startsWith(`${id}/`) || value === "understudy")
    );
  }
}

function withoutSecrets(address: string): string {
  return address.replace(/[^/]*@/, "…@");
}

interface Value {
  readonly value: string;
  readonly from: string;
}

type Read = (...variables: string[]) => Value | undefined;

function reader(environment: ModelVariables): Read {
  return (...variables) => {
    for (const variable of variables) {
      const value = environment[variable]?.trim();
      if (value !== undefined && value !== "") return { value, from: variable };
    }
    return undefined;
  };
}

function valueFrom(from: string, value: string | undefined): Value | undefined {
  return value === undefined || value === "" ? undefined : { value, from };
}

/** Assigns a key without a base URL to the provider that the model names. A guess could send the key to a stranger. */
function withoutEndpoint(apiKey: Value | undefined, model: string | undefined): EnvironmentSettings {
  const defaults = optional("defaultModel", model);
  if (apiKey === undefined) return { providers: new Map(), ...defaults };
  const id = model?.includes("/") ? model.slice(0, model.indexOf("/")) : undefined;
  if (id !== undefined && providerList.some((definition) => definition.id === id)) {
    return { providers: new Map([[id, { apiKey: apiKey.value }]]), ...defaults };
  }
  throw new TroupeError("configuration", `${apiKey.from} is set, but the provider of the key is unknown`, {
    hint: "Set TROUPE_BASE_URL to the server's address, or TROUPE_MODEL to provider/model.",
  });
}

function kindOf(read: Read, flags: SettingsFlags): Pick<ConfiguredProvider, "type" | "wireApi"> {
  const wire = valueFrom("--wire-api", flags.wireApi) ?? read("TROUPE_WIRE_API", "COPILOT_PROVIDER_WIRE_API");
  const type = read("COPILOT_PROVIDER_TYPE");
  if (type !== undefined && !isOneOf(["openai", "azure", "anthropic"], type.value)) {
    throw oneOf(type, ["openai", "azure", "anthropic"]);
  }
  if (wire !== undefined && !isOneOf(wires, wire.value)) throw oneOf(wire, wires);
  // Our variable takes precedence over the alias, even if they set different things.
  if (wire !== undefined && wire.from !== "COPILOT_PROVIDER_WIRE_API" && type?.value === "anthropic") {
    return { wireApi: wire.value as WireApi };
  }
  return {
    ...optional("type", type?.value as ConfiguredProvider["type"]),
    ...optional("wireApi", wire?.value as WireApi),
  };
}

const wires: readonly WireApi[] = ["completions", "responses", "anthropic"];

function isOneOf(values: readonly string[], value: string): boolean {
  return values.includes(value);
}

function oneOf({ value, from }: Value, values: readonly string[]): TroupeError {
  return new TroupeError("configuration", `${from}: "${value}" is not one of ${values.join(", ")}`);
}

/** Without a key, none is sent: another provider's key never goes to this URL. */
function keyOf(read: Read, apiKey: string | undefined): Partial<ConfiguredProvider> {
  const bearerToken = read("COPILOT_PROVIDER_BEARER_TOKEN")?.value;
  const command = read("COPILOT_PROVIDER_API_KEY_COMMAND")?.value;
  if (bearerToken !== undefined) return { bearerToken };
  if (apiKey !== undefined) return { apiKey };
  if (command !== undefined) return { apiKeyCommand: splitCommand(command) };
  return { auth: "none" };
}

function headersOf(given: Value | undefined): Record<string, string> | undefined {
  if (given === undefined) return undefined;
  const json = given.value.startsWith("{") ? parseJson(given.value) : undefined;
  if (json?.ok && isObject(json.value) && Object.values(json.value).every((value) => typeof value === "string")) {
    return json.value as Record<string, string>;
  }
  const lines = json === undefined ? given.value.split(/\r?\n|;/).filter((line) => line.trim() !== "") : [""];
  const pairs = lines.map((line) => /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line));
  if (pairs.some((pair) => pair === null)) {
    throw new TroupeError("configuration", `${given.from}: expected headers`, {
      hint: 'Write them as {"name": "value"}, or as "name: value" with one per line.',
    });
  }
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? "", pair?.[2] ?? ""]));
}

function modelOf(read: Read, name: string | undefined): Partial<ConfiguredProvider> {
  if (name === undefined) return {};
  const prompt = tokens(read("COPILOT_PROVIDER_MAX_PROMPT_TOKENS"));
  const output = tokens(read("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"));
  const model = {
    name,
    price: null,
    ...optional("wireName", read("COPILOT_PROVIDER_WIRE_MODEL")?.value),
    ...optional("maxOutputTokens", output),
    ...optional("contextWindow", prompt === undefined ? undefined : prompt + (output ?? 0)),
  };
  return { defaultModel: name, models: [model] };
}

function tokens(given: Value | undefined): number | undefined {
  if (given === undefined) return undefined;
  const count = Number(given.value);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new TroupeError("configuration", `${given.from}: "${given.value}" is not a number of tokens`);
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
}
