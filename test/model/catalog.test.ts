import { describe, expect, it } from "vitest";
import { type ResolvedModel, resolveModel } from "../../src/model/catalog.ts";
import { listModels } from "../../src/model/list-models.ts";
import { free } from "../../src/model/prices.ts";
import { type ModelSettings, readSettings } from "../../src/model/settings/settings.ts";
import type { ModelFetch } from "../../src/model/wire/endpoint.ts";
import type { TroupeError } from "../../src/protocol/errors.ts";
import { HANG_MS } from "../support/work.ts";
import { collect, request } from "./scripted.ts";
import { compatible, json, serve } from "./server.ts";

const live = new AbortController().signal;

/** Any traffic that is not asked for is a failure. */
const noNetwork = { fetch: (): never => expect.unreachable("nothing should be fetched") };

function settings(environment: Record<string, string>, file?: object): ModelSettings {
  const providersFile = file && { path: "providers.json", text: JSON.stringify(file) };
  return readSettings({ environment, ...(providersFile && { providersFile }) });
}

function facts({ provider, ...rest }: ResolvedModel): object {
  return { ...rest, wire: provider.id };
}

async function refusal(
  promise: Promise<unknown>,
): Promise<{ kind: string; message: string; hint: string | undefined }> {
  const error = (await promise.then(
    () => expect.unreachable("should have been refused"),
    (reason: unknown) => reason,
  )) as TroupeError;
  return { kind: error.kind, message: error.message, hint: error.hint };
}

/** The built-in local servers, moved to ports that the test owns. */
function moved(base: ModelSettings, addresses: Record<string, string>): ModelSettings {
  const nowhere = "http://127.0.0.1:1/v1";
  return {
    ...base,
    providers: base.providers.map((one) => (one.local ? { ...one, baseUrl: addresses[one.id] ?? nowhere } : one)),
  };
}

describe("a requested model", () => {
  it("a model is found by provider and name, without a request", async () => {
    const resolved = await resolveModel(settings({ ANTHROPIC_API_KEY: "k" }), "anthropic/claude-opus-5-5", noNetwork);
    expect(facts(resolved)).toEqual({
      wire: "anthropic",
      providerId: "anthropic",
      model: "claude-opus-5-5",
      displayName: "claude-opus-5-5",
      contextWindow: 1_000_000,
      maxOutputTokens: 128_000,
      price: { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5, webSearch: 10 },
      label: "claude-opus-5-5 (Anthropic)",
      route: { apiEndpoint: "/v1/messages", isByok: true, transport: "http" },
      searchAddress: "https://api.anthropic.com/v1",
    });
  });

  it("a request for a stream requests usage unless the provider's settings say otherwise", async () => {
    const asks = async (name: string, file: object = {}): Promise<unknown> => {
      let body = "";
      const fetch = async (_url: string, init: RequestInit): Promise<Response> => {
        body = String(init.body);
        return new Response("{}");
      };
      const environment = { MISTRAL_API_KEY: "k", GROQ_API_KEY: "k" };
      const { provider, model } = await resolveModel(settings(environment, { providers: file }), name, { fetch });
      await collect(provider.stream({ ...request, model, stream: true }, live));
      return JSON.parse(body).stream_options;
    };
    expect(await asks("groq/openai/gpt-oss-20b")).toEqual({ include_usage: true });
    expect(await asks("groq/openai/gpt-oss-20b", { groq: { streamUsage: false } })).toBeUndefined();
    expect(await asks("mistral/codestral-latest")).toBeUndefined();
    expect(await asks("mistral/codestral-latest", { mistral: { streamUsage: true } })).toEqual({ include_usage: true });
  });

  it("a model is found by its bare name at the provider known to offer it", async () => {
    const keys = { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
    const resolved = await resolveModel(settings(keys), "gpt-5-mini", noNetwork);
    expect(resolved).toMatchObject({ providerId: "openai", model: "gpt-5-mini" });
  });

  it("a model is requested from the one given address, whichever other providers know the name", async () => {
    await using server = await serve(compatible([{ id: "gpt-5-mini" }]));
    const environment = { TROUPE_BASE_URL: `${server.url}/v1`, TROUPE_API_KEY: "mine", OPENAI_API_KEY: "theirs" };
    const { provider, model } = await resolveModel(settings(environment), "gpt-5-mini");
    expect(await collect(provider.stream({ ...request, model }, live))).toMatchObject([
      { delta: "ok" },
      { stop: "done" },
    ]);
    expect(server.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ["/v1/chat/completions", "Bearer mine"],
    ]);
  });

  it("a model with a missing key is refused with the variable's name, and no other provider is used", async () => {
    expect(
      await refusal(resolveModel(settings({ OPENAI_API_KEY: "k" }), "groq/openai/gpt-oss-120b", noNetwork)),
    ).toEqual({
      kind: "configuration",
      message: "groq/openai/gpt-oss-120b needs GROQ_API_KEY, which is not set",
      hint: "Set GROQ_API_KEY, or give groq a key in your providers file.",
    });
    expect(await refusal(resolveModel(settings({}), "claude-opus-5-5", noNetwork))).toMatchObject({
      message: "anthropic/claude-opus-5-5 needs ANTHROPIC_API_KEY, which is not set",
    });
  });

  it("an unknown model is refused with the nearest name", async () => {
    const keys = { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
    expect(await refusal(resolveModel(settings(keys), "claud-opus-5-5", noNetwork))).toEqual({
      kind: "configuration",
      message: 'There is no model "claud-opus-5-5"',
      hint: "Did you mean anthropic/claude-opus-5-5?",
    });
    expect(await refusal(resolveModel(settings(keys), "zzzzzzzzzzzz", noNetwork))).toMatchObject({
      hint: "Run `troupe models` to list the models.",
    });
  });

  it("a model unknown to its provider is used as given, and the nearest name is suggested on failure", async () => {
    await using server = await serve((asked, response) => {
      if (asked.url === "/v1/models") return json(response, { data: [{ id: "qwen-large" }, { id: "qwen-small" }] });
      return json(response, { error: { message: "no such model" } }, 404);
    });
    const file = { providers: { work: { baseUrl: `${server.url}/v1`, apiKey: "k" } } };
    const { provider, model } = await resolveModel(settings({}, file), "work/qwen-larg");
    expect(server.requests).toEqual([]);
    expect(await collect(provider.stream({ ...request, model }, live))).toMatchObject([
      { stop: "error", error: { kind: "request", statusCode: 404, hint: "Did you mean work/qwen-large?" } },
    ]);
    expect(server.requests.map(({ url }) => url)).toEqual(["/v1/chat/completions", "/v1/models"]);
  });

  it("a model must be named in full when several configured providers offer it", async () => {
    const file = { providers: { work: { baseUrl: "http://127.0.0.1:1/v1", models: { "gpt-5-mini": {} } } } };
    expect(await refusal(resolveModel(settings({ OPENAI_API_KEY: "k" }, file), "gpt-5-mini", noNetwork))).toEqual({
      kind: "configuration",
      message: '"gpt-5-mini" is offered by several providers',
      hint: "Say which: work/gpt-5-mini or openai/gpt-5-mini.",
    });
  });

  it("a model is refused when its local server does not answer", async () => {
    expect(await refusal(resolveModel(moved(settings({}), {}), "ollama/llama3"))).toEqual({
      kind: "configuration",
      message: "ollama/llama3 needs Ollama, and no server answers at 127.0.0.1:1",
      hint: "Start Ollama, or choose another model.",
    });
  });

  it("a model has the context window that Ollama reports", async () => {
    await using server = await serve((asked, response) => {
      if (asked.url === "/api/ps")
        return json(response, { models: [{ name: "llama3:latest", context_length: 4_096 }] });
      return json(response, { data: [{ id: "llama3:latest" }] });
    });
    const resolved = await resolveModel(moved(settings({}), { ollama: `${server.url}/v1` }), "ollama/llama3");
    expect(facts(resolved)).toEqual({
      wire: "ollama",
      providerId: "ollama",
      model: "llama3",
      displayName: "llama3",
      contextWindow: 4_096,
      price: free,
      label: "llama3 (Ollama)",
      route: { apiEndpoint: "/chat/completions", isByok: true, transport: "http" },
    });
  });

  it("the understudy can be requested as a model without a key", async () => {
    const resolved = await resolveModel(settings({ OPENAI_API_KEY: "k" }), "understudy", noNetwork);
    expect(facts(resolved)).toEqual({
      wire: "understudy",
      providerId: "understudy",
      model: "understudy",
      displayName: "understudy",
      price: free,
      label: "understudy (built in)",
    });
  });

  it("a model may have another name at its provider", async () => {
    const models = { nice: { wireModel: "ugly-1", displayName: "Nice" } };
    const file = { providers: { work: { baseUrl: "http://127.0.0.1:1/v1", models } } };
    expect(await resolveModel(settings({}, file), "work/nice", noNetwork)).toMatchObject({
      model: "ugly-1",
      displayName: "Nice",
      label: "Nice (work)",
    });
  });
});

describe("the choice of a model when none is requested", () => {
  it("the configured default model is used when no model is requested", async () => {
    const environment = { TROUPE_MODEL: "openai/gpt-4.1", OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
    expect(await resolveModel(settings(environment), undefined, noNetwork)).toMatchObject({ model: "gpt-4.1" });
  });

  it("a default model that cannot be used is an error, and no other model is used instead", async () => {
    const environment = { TROUPE_MODEL: "groq/openai/gpt-oss-20b", ANTHROPIC_API_KEY: "k" };
    expect(await refusal(resolveModel(settings(environment), undefined, noNetwork))).toMatchObject({
      message: "groq/openai/gpt-oss-20b needs GROQ_API_KEY, which is not set",
    });
  });

  it("the default of the first configured provider is used when no model is requested", async () => {
    const environment = { MISTRAL_API_KEY: "k", GROQ_API_KEY: "k" };
    expect(await resolveModel(settings(environment), undefined, noNetwork)).toMatchObject({
      providerId: "mistral",
      model: "mistral-medium-latest",
    });
  });

  it("a server with one model needs no model name, and a server with several needs one", async () => {
    const models = [{ id: "one" }];
    await using server = await serve((asked, response) => compatible(models)(asked, response));
    const environment = { TROUPE_BASE_URL: `${server.url}/v1` };
    expect(await resolveModel(settings(environment), undefined)).toMatchObject({ model: "one" });
    models.push({ id: "two" });
    expect(await refusal(resolveModel(settings(environment), undefined))).toMatchObject({
      hint: "Name one, as custom/one; it has one, two.",
    });
  });

  it("a model server on this machine is found, without waiting for one that never answers", async () => {
    await using studio = await serve(compatible([{ id: "qwen", max_context_length: 8_192 }]));
    await using hanging = await serve(() => undefined);
    await using web = await serve((_, response) => void response.end("<html>"));
    const base = moved(settings({}), {
      ollama: `${hanging.url}/v1`,
      lmstudio: `${studio.url}/v1`,
      llamacpp: `${web.url}/v1`,
    });
    // Only the silent server needs its time: a busy machine must not make the others late.
    const asked: ModelFetch = (url, init) => {
      if (String(url).startsWith(hanging.url)) return fetch(url, init);
      return fetch(url, { ...init, signal: null });
    };
    const begun = performance.now();
    expect(await resolveModel(base, undefined, { fetch: asked })).toMatchObject({
      providerId: "lmstudio",
      model: "qwen",
      contextWindow: 8_192,
      label: "qwen (LM Studio)",
    });
    expect(performance.now() - begun).toBeLessThan(HANG_MS);
  });

  it("the search for model servers tries only this machine, and nothing if it is switched off", async () => {
    const elsewhere = moved(settings({}), { ollama: "http://192.0.2.1/v1", lmstudio: "http://h.test/v1" });
    const asked: string[] = [];
    const fetch = (url: unknown): never => {
      asked.push(String(url));
      throw new Error("no");
    };
    await resolveModel(elsewhere, undefined, { fetch });
    expect(asked).toEqual(["http://127.0.0.1:1/v1/models"]);
    const here = moved(settings({}), { ollama: "http://localhost:1/v1", lmstudio: "http://[::1]:1/v1" });
    await resolveModel(here, undefined, { fetch });
    expect(asked).toEqual(expect.arrayContaining(["http://localhost:1/v1/models", "http://[::1]:1/v1/models"]));
    await resolveModel(settings({ TROUPE_NO_DISCOVERY: "1" }), undefined, noNetwork);
  });

  it("the understudy is used when no model is configured", async () => {
    const resolved = await resolveModel(moved(settings({}), {}), undefined);
    expect(resolved).toMatchObject({
      providerId: "understudy",
      label: "understudy (built in, because no model is configured)",
    });
  });

  it("a provider that was set up without its key is named in the error instead of being skipped", async () => {
    const file = { providers: { work: { baseUrl: "http://127.0.0.1:1", apiKeyVariable: "WORK_KEY" } } };
    expect(await refusal(resolveModel(settings({}, file), undefined, noNetwork))).toMatchObject({
      message: "work/… needs WORK_KEY, which is not set",
    });
  });
});

describe("a request to a provider", () => {
  it.each([
    [
      "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
      { AZURE_OPENAI_API_VERSION: "2024-10-21" },
    ],
    ["/openai/v1/chat/completions", {}],
  ])("a request to Azure has the path and the key that Azure needs: %s", async (url, version) => {
    await using server = await serve(compatible([]));
    const environment = { AZURE_OPENAI_ENDPOINT: server.url, AZURE_OPENAI_API_KEY: "k", ...version };
    const { provider, model } = await resolveModel(settings(environment), "azure/my gpt");
    await collect(provider.stream({ ...request, model }, live));
    expect(server.requests.map((asked) => [asked.url, asked.headers["api-key"], asked.headers.authorization])).toEqual([
      [url, "k", undefined],
    ]);
  });

  it.each(["", "/v1"])(
    "a request to Anthropic has its path and key, with or without a version in the address (%j)",
    async (path) => {
      await using server = await serve((_, response) => json(response, { error: { message: "no" } }, 400));
      const environment = { ANTHROPIC_BASE_URL: `${server.url}${path}`, ANTHROPIC_API_KEY: "k" };
      const { provider, model } = await resolveModel(settings(environment), "claude-opus-5-5");
      await collect(provider.stream({ ...request, model }, live));
      expect(
        server.requests.map(({ url, headers }) => [url, headers["x-api-key"], headers["anthropic-version"]]),
      ).toEqual([["/v1/messages", "k", "2023-06-01"]]);
    },
  );

  it("a request goes to the provider of its model when a session uses two", async () => {
    await using one = await serve(compatible([]));
    await using two = await serve(compatible([]));
    const file = {
      providers: {
        one: { baseUrl: `${one.url}/v1`, apiKey: "1", models: { m: {} } },
        two: { baseUrl: `${two.url}/v1`, apiKey: "2", models: { m: {} } },
      },
    };
    for (const reference of ["one/m", "two/m", "one/m"]) {
      const { provider, model } = await resolveModel(settings({ OPENAI_API_KEY: "x" }, file), reference);
      await collect(provider.stream({ ...request, model }, live));
    }
    expect(one.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 1"]);
    expect(two.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer 2"]);
  });
});

describe("the list of models", () => {
  it("the list of models says for each model whether it can be used and, if not, why", async () => {
    await using server = await serve(compatible([{ id: "llama", context_length: 4_096 }]));
    const base = moved(settings({ GROQ_API_KEY: "k" }), { lmstudio: `${server.url}/v1` });
    const fetch = (url: Parameters<typeof globalThis.fetch>[0], init?: RequestInit): Promise<Response> =>
      String(url).startsWith("https://api.groq.com/")
        ? Promise.reject(new Error("offline"))
        : globalThis.fetch(url, init);
    const rows = await listModels(base, { fetch });
    const row = (ref: string) => rows.find((candidate) => candidate.ref === ref);
    expect(row("groq/openai/gpt-oss-20b")).toEqual({
      ref: "groq/openai/gpt-oss-20b",
      provider: "groq",
      id: "groq/openai/gpt-oss-20b",
      name: "openai/gpt-oss-20b",
      maxOutputTokens: 65536,
      usable: true,
      reason: "",
      contextWindow: 131_072,
      price: { input: 0.075, output: 0.3 },
    });
    expect(row("openai/gpt-4.1")).toMatchObject({ usable: false, reason: "set OPENAI_API_KEY" });
    expect(row("ollama/…")).toMatchObject({ usable: false, reason: "no server at 127.0.0.1:1" });
    expect(row("lmstudio/llama")).toMatchObject({ usable: true, contextWindow: 4_096, price: free });
    expect(row("understudy")).toMatchObject({ usable: true });
  });

  it("the list of models reports a rejected key", async () => {
    await using server = await serve((_, response) => json(response, {}, 401));
    const file = { providers: { work: { baseUrl: `${server.url}/v1`, apiKey: "bad", models: { m: {} } } } };
    const rows = await listModels(settings({ TROUPE_NO_DISCOVERY: "1" }, file));
    expect(rows[0]).toMatchObject({
      ref: "work/m",
      usable: false,
      reason: `127.0.0.1:${server.port} refused the key (HTTP 401)`,
    });
  });
});
