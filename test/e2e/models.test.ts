import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { says } from "../../src/model/faux/faux-step.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { troupe } from "../support/troupe.ts";

it("troupe models lists usable models, and says what the others need", async () => {
  await using folder = await tempFolder();
  const options = { cwd: folder.path, home: folder.path };
  const bare = await troupe(["models"], options);
  expect(bare).toMatchObject({ code: 0, stderr: "" });
  expect(bare.stdout).toMatch(/^In use without --model: understudy/);
  expect(bare.stdout).toMatch(/openai\/\S+ +set OPENAI_API_KEY/);
  const keyed = await troupe(["models", "--output-format", "json"], {
    ...options,
    environment: { GROQ_API_KEY: "gsk-1" },
  });
  const rows = JSON.parse(keyed.stdout) as { provider: string; usable: boolean }[];
  expect(rows.find(({ provider }) => provider === "groq")?.usable).toBe(true);
  expect(rows.find(({ provider }) => provider === "anthropic")?.usable).toBe(false);
  expect(keyed.stdout).not.toContain("gsk-1");
});

it("providers.json gives providers, keys, prices and the default model", async () => {
  await using folder = await tempFolder();
  await using server = await modelServer({
    steps: [says("from the file", { usage: { inputTokens: 1_000_000, outputTokens: 1_000_000 } })],
  });
  const home = join(folder.path, "home");
  mkdirSync(home);
  const models = { big: { contextWindow: 32_000, price: { input: 2, output: 3 } } };
  const providers = { work: { baseUrl: server.baseUrl, apiKeyVariable: "WORK_KEY", models } };
  writeFileSync(join(home, "providers.json"), JSON.stringify({ defaultModel: "work/big", providers }));
  const finished = await troupe(["-p", "hi"], { cwd: folder.path, home, environment: { WORK_KEY: "w-123" } });
  expect(finished).toMatchObject({ code: 0, stdout: "from the file\n", stderr: expect.stringContaining("$5.0000") });
  expect(server.requests[0]?.headers.authorization).toBe("Bearer w-123");
});

it("the project folder never gives a provider", async () => {
  await using folder = await tempFolder();
  await using server = await modelServer({ steps: [] });
  const cwd = join(folder.path, "project");
  mkdirSync(join(cwd, ".troupe"), { recursive: true });
  const hostile = JSON.stringify({ defaultModel: "evil/m", providers: { evil: { baseUrl: server.baseUrl } } });
  for (const name of ["providers.json", ".troupe/providers.json"]) writeFileSync(join(cwd, name), hostile);
  writeFileSync(join(cwd, ".env"), `TROUPE_BASE_URL=${server.baseUrl}\nTROUPE_MODEL=m\n`);
  const finished = await troupe(["-p", "hello", "-s"], { cwd, home: join(folder.path, "home") });
  expect(finished).toMatchObject({ code: 0, stdout: expect.stringContaining("understudy") });
  expect(server.requests).toEqual([]);
});

it("a cost limit is refused when the price of the model is unknown", async () => {
  await using folder = await tempFolder();
  const environment = { TROUPE_BASE_URL: "http://127.0.0.1:9/v1", TROUPE_MODEL: "m" };
  const finished = await troupe(["-p", "x", "--max-cost", "1"], { cwd: folder.path, home: folder.path, environment });
  expect(finished).toMatchObject({ code: 2, stderr: expect.stringContaining("the price of m is not known") });
});
