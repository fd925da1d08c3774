import { describe, expect, it } from "vitest";
import type { TroupeError } from "../../protocol/errors.ts";
import { type ProviderSettings, readSettings, registryPath, type SettingsInput } from "./settings.ts";

const file = (value: unknown): { path: string; text: string } => ({
  path: "/home/u/providers.json",
  text: typeof value === "string" ? value : JSON.stringify(value),
});

function provider(id: string, input: Partial<SettingsInput>): ProviderSettings | undefined {
  return readSettings({ environment: {}, ...input }).providers.find((candidate) => candidate.id === id);
}

function problem(input: Partial<SettingsInput>): { message: string; hint: string | undefined } {
  try {
    readSettings({ environment: {}, ...input });
  } catch (error) {
    const { message, hint } = error as TroupeError;
    return { message, hint };
  }
  throw new Error("no error");
}

describe("settings without any configuration", () => {
  it("settings without any configuration configure no provider, and say what each one needs", () => {
    const { providers, ...rest } = readSettings({ environment: {} });
    expect(rest).toEqual({ discovery: true });
    expect(providers.filter(({ configured }) => configured)).toEqual([]);
    expect(Object.fromEntries(providers.map(({ id, missing }) => [id, missing]))).toEqual({
      anthropic: "set ANTHROPIC_API_KEY",
      openai: "set OPENAI_API_KEY",
      azure: "set AZURE_OPENAI_ENDPOINT",
      gemini: "set GEMINI_API_KEY",
      mistral: "set MISTRAL_API_KEY",
      deepseek: "set DEEPSEEK_API_KEY",
      groq: "set GROQ_API_KEY",
      openrouter: "set OPENROUTER_API_KEY",
    });
  });

  it("settings without any configuration search for local servers unless that is switched off", () => {
    expect(readSettings({ environment: { TROUPE_NO_DISCOVERY: "1" } }).discovery).toBe(false);
    expect(readSettings({ environment: { TROUPE_NO_DISCOVERY: "0" } }).discovery).toBe(true);
  });
});

describe("the environment", () => {
  it("the environment configures a known provider by its key", () => {
    expect(provider("groq", { environment: { GROQ_API_KEY: " gsk \n" } })).toMatchObject({
      configured: true,
      auth: "bearer",
      key: { type: "value", value: "gsk" },
      baseUrl: "https://api.groq.com/openai/v1",
      keyHint: "Check GROQ_API_KEY.",
    });
  });

  it("the environment's second variable is used when the first is empty", () => {
    const environment = { GEMINI_API_KEY: "", GOOGLE_API_KEY: "g" };
    expect(provider("gemini", { environment })?.key).toEqual({ type: "value", value: "g" });
  });

  it("the environment describes Azure by endpoint, key and version", () => {
    const environment = { AZURE_OPENAI_ENDPOINT: "https://r.openai.azure.com/", AZURE_OPENAI_API_KEY: "k" };
    expect(provider("azure", { environment })).toMatchObject({
      baseUrl: "https://r.openai.azure.com",
      auth: "api-key",
      azure: {},
      configured: true,
    });
    expect(provider("azure", { environment: { ...environment, OPENAI_API_VERSION: "2024-10-21" } })?.azure).toEqual({
      apiVersion: "2024-10-21",
    });
  });

  it("the environment can describe a server of the user's own, which gets no other provider's key", () => {
    const environment = { TROUPE_BASE_URL: "http://127.0.0.1:9/v1/", TROUPE_MODEL: "a/b", OPENAI_API_KEY: "secret" };
    const settings = readSettings({ environment });
    expect(settings.defaultModel).toBe("custom/a/b");
    expect(settings.providers[0]).toEqual({
      id: "custom",
      name: "127.0.0.1:9",
      wire: "completions",
      baseUrl: "http://127.0.0.1:9/v1",
      auth: "none",
      key: { type: "none" },
      headers: {},
      listsModels: true,
      models: [{ name: "a/b", price: null }],
      defaultModel: "a/b",
      configured: true,
      keyHint: "Set TROUPE_API_KEY.",
    });
  });

  it("the environment can use the other product's names of variables", () => {
    const environment = {
      COPILOT_PROVIDER_BASE_URL: "https://h.test",
      COPILOT_PROVIDER_TYPE: "anthropic",
      COPILOT_PROVIDER_WIRE_API: "responses",
      COPILOT_PROVIDER_BEARER_TOKEN: "t",
      COPILOT_PROVIDER_API_KEY: "k",
      COPILOT_PROVIDER_HEADERS: '{"x-team":"a"}',
      COPILOT_PROVIDER_WIRE_MODEL: "claude-deployed",
      COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "1000",
      COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: "200",
      COPILOT_MODEL: "claude",
    };
    const settings = readSettings({ environment });
    expect(settings.defaultModel).toBe("custom/claude");
    expect(settings.providers[0]).toMatchObject({
      wire: "anthropic",
      auth: "bearer",
      key: { type: "value", value: "t" },
      headers: { "x-team": "a" },
      models: [{ name: "claude", wireName: "claude-deployed", contextWindow: 1_200, maxOutputTokens: 200 }],
    });
  });

  it("the environment can use these names for Azure and key commands, and troupe's own names win", () => {
    const environment = {
      COPILOT_PROVIDER_BASE_URL: "https://other.test",
      TROUPE_BASE_URL: "https://r.azure.test",
      COPILOT_PROVIDER_TYPE: "azure",
      COPILOT_PROVIDER_AZURE_API_VERSION: "v9",
      COPILOT_PROVIDER_API_KEY_COMMAND: "az token --for 'a b'",
      COPILOT_PROVIDER_HEADERS: "a: 1\nb: 2",
      COPILOT_PROVIDER_MODEL_ID: "m",
    };
    expect(readSettings({ environment }).providers[0]).toMatchObject({
      baseUrl: "https://r.azure.test",
      wire: "completions",
      azure: { apiVersion: "v9" },
      auth: "api-key",
      key: { type: "command", command: ["az", "token", "--for", "a b"] },
      headers: { a: "1", b: "2" },
      listsModels: false,
    });
  });

  it("the environment gives a key without an address to the provider that the model names, or to none", () => {
    const environment = { TROUPE_API_KEY: "k", TROUPE_MODEL: "mistral/m" };
    expect(provider("mistral", { environment })?.key).toEqual({ type: "value", value: "k" });
    expect(problem({ environment: { TROUPE_API_KEY: "k", TROUPE_MODEL: "m" } }).message).toBe(
      "TROUPE_API_KEY is set, but the provider of the key is unknown",
    );
  });

  it.each([
    [{ TROUPE_BASE_URL: "localhost" }, 'TROUPE_BASE_URL: "localhost" is not an address'],
    [{ TROUPE_BASE_URL: "https://u:p@h.test" }, 'TROUPE_BASE_URL: "https://…@h.test" is not an address'],
    [{ OPENAI_BASE_URL: "nowhere" }, 'OPENAI_BASE_URL: "nowhere" is not an address'],
    [
      { TROUPE_BASE_URL: "http://h", TROUPE_WIRE_API: "soap" },
      'TROUPE_WIRE_API: "soap" is not one of completions, responses, anthropic',
    ],
    [
      { TROUPE_BASE_URL: "http://h", TROUPE_MODEL: "m", COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: "many" },
      'COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: "many" is not a number of tokens',
    ],
    [{ TROUPE_BASE_URL: "http://h", COPILOT_PROVIDER_HEADERS: "{oops" }, "COPILOT_PROVIDER_HEADERS: expected headers"],
  ])("a wrong environment is an error (%j), and the message names the variable", (environment, message) => {
    expect(problem({ environment }).message).toBe(message);
  });
});

describe("the providers file", () => {
  it.each(["bearer", "x-api-key", "api-key", "x-goog-api-key"])(
    "the providers file can say that the key is sent as %s",
    (auth) => {
      const providersFile = file({ providers: { work: { baseUrl: "https://w.test/v1", apiKey: "k", auth } } });
      expect(provider("work", { providersFile })).toMatchObject({ auth, key: { value: "k" } });
    },
  );

  it("the providers file adds providers and models, and changes known ones", () => {
    const providersFile = file({
      defaultModel: "work/big",
      providers: {
        work: {
          name: "Work",
          baseUrl: "https://llm.work.test/v1",
          wireApi: "responses",
          apiKeyVariable: "WORK_KEY",
          headers: { "x-team": "a" },
          maxConcurrency: 3,
          timeouts: { silenceSeconds: 600, totalSeconds: 3_600 },
          models: { big: { contextWindow: 9_000, price: { input: 1, output: 2 } } },
        },
        openai: { models: { "gpt-5-mini": { contextWindow: 1_000 } } },
      },
      models: { small: { provider: "work", wireModel: "small-2" } },
    });
    const settings = readSettings({ environment: { WORK_KEY: "k" }, providersFile });
    expect(settings.defaultModel).toBe("work/big");
    expect(settings.providers.slice(0, 2).map(({ id }) => id)).toEqual(["work", "openai"]);
    expect(settings.providers[0]).toEqual({
      id: "work",
      name: "Work",
      wire: "responses",
      baseUrl: "https://llm.work.test/v1",
      auth: "bearer",
      key: { type: "value", value: "k" },
      headers: { "x-team": "a" },
      listsModels: true,
      models: [
        { name: "big", contextWindow: 9_000, price: { input: 1, output: 2 } },
        { name: "small", wireName: "small-2", price: null },
      ],
      maxConcurrency: 3,
      bounds: { idleMs: 600_000, totalMs: 3_600_000 },
      configured: true,
      keyHint: "Check WORK_KEY.",
    });
    const known = settings.providers[1]?.models.find(({ name }) => name === "gpt-5-mini");
    expect(known).toEqual({
      name: "gpt-5-mini",
      contextWindow: 1_000,
      maxOutputTokens: 128_000,
      price: { input: 0.25, output: 2, cacheRead: 0.025, webSearch: 10 },
    });
  });

  it("the providers file loses against the environment, a registry file, and a flag, in this order", () => {
    const providersFile = file({ defaultModel: "from-file" });
    const environment = { TROUPE_MODEL: "from-environment" };
    const registryFile = { path: "/r.json", text: '{"defaultModel":"from-registry"}' };
    const model = (input: Partial<SettingsInput>) => readSettings({ environment: {}, ...input }).defaultModel;
    expect(model({ providersFile })).toBe("from-file");
    expect(model({ providersFile, environment })).toBe("from-environment");
    expect(model({ providersFile, environment, registryFile })).toBe("from-registry");
    expect(model({ providersFile, environment, registryFile, flags: { model: "from-flag" } })).toBe("from-flag");
  });

  it.each([
    ["{", "/home/u/providers.json is not JSON:"],
    [{ providers: { w: {} } }, "/home/u/providers.json: providers.w.baseUrl: is missing"],
    [{ providers: { w: { baseUrl: "ftp://x" } } }, "/home/u/providers.json: providers.w.baseUrl: must be an address"],
    [
      { providers: { openai: { apikey: "k" } } },
      "/home/u/providers.json: providers.openai.apikey: there is no such setting",
    ],
    [{ providers: { "a/b": { baseUrl: "http://h" } } }, '/home/u/providers.json: providers: "a/b" cannot be the name'],
    [
      { providers: { understudy: { baseUrl: "http://h" } } },
      '/home/u/providers.json: providers: "understudy" cannot be',
    ],
    [{ models: { m: {} } }, "/home/u/providers.json: models.m.provider: "],
    [{ providers: { groq: { models: { m: { contextWindow: -1 } } } } }, "providers.groq.models.m.contextWindow: "],
    [{ providers: { groq: { npm: "../evil" } } }, "providers.groq.npm: must be the name of a package"],
    ["[]", "/home/u/providers.json: (the whole file): "],
  ])("a mistake in the providers file is refused (%j), and the error names file and field", (value, message) => {
    expect(problem({ providersFile: file(value) }).message).toContain(message);
  });

  it("the providers file suggests the right name of a misspelt field", () => {
    expect(problem({ providersFile: file({ providers: { groq: { baseUrI: "http://h" } } }) }).hint).toBe(
      'Did you mean "baseUrl"?',
    );
  });
});

describe("a registry", () => {
  const registry = {
    providers: [
      { name: "az", type: "azure", baseUrl: "https://r.test", apiKey: "k", azure: { apiVersion: "v1" } },
      { name: "oai", baseUrl: "https://o.test/v1", bearerToken: "b", wireApi: "responses" },
    ],
    models: [{ id: "m", provider: "oai", wireModel: "w", name: "M", maxPromptTokens: 10, maxOutputTokens: 5 }],
  };

  it("the provider registry's variable may contain lists, as client programs write them", () => {
    const { providers } = readSettings({ environment: { COPILOT_PROVIDERS_CONFIG: JSON.stringify(registry) } });
    expect(providers.slice(0, 2)).toMatchObject([
      { id: "az", auth: "api-key", azure: { apiVersion: "v1" }, key: { value: "k" } },
      {
        id: "oai",
        auth: "bearer",
        wire: "responses",
        key: { value: "b" },
        models: [{ name: "m", wireName: "w", displayName: "M", contextWindow: 15, maxOutputTokens: 5, price: null }],
      },
    ]);
  });

  it("the provider registry is read from a path when the variable does not contain JSON", () => {
    expect(registryPath({ COPILOT_PROVIDERS_CONFIG: "/r.json" })).toBe("/r.json");
    expect(registryPath({ COPILOT_PROVIDERS_CONFIG: "{}" })).toBeUndefined();
    expect(registryPath({})).toBeUndefined();
  });
});
