import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fails, modelServer, says, tempFolder } from "../../src/testing/index.ts";
import { troupe } from "../support/troupe.ts";

it("troupe login tests a key with one request, stores it with the other settings, and uses it", async () => {
  await using folder = await tempFolder();
  await using server = await modelServer({ steps: [says("ready"), says("Hello.")] });
  const path = join(folder.path, "providers.json");
  const other = { baseUrl: "http://127.0.0.1:9/v1", defaultModel: "m" };
  writeFileSync(path, JSON.stringify({ providers: { other, openai: { apiKeyVariable: "GONE" } } }));
  const options = { cwd: folder.path, home: folder.path, environment: { OPENAI_BASE_URL: server.baseUrl } };
  const stored = await troupe(["login", "openai"], { ...options, stdin: "sk-new\n" });
  expect(stored).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^The key is stored\. openai\/\S+ answers\.\n$/),
  });
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ providers: { other, openai: { apiKey: "sk-new" } } });
  expect(statSync(path).mode & 0o077).toBe(0);
  expect(`${stored.stdout}${stored.stderr}`).not.toContain("sk-new");
  expect(stored.stderr).toContain(`one request to openai at ${new URL(server.baseUrl).host}\n`);
  const model = /openai\/\S+/.exec(stored.stdout)?.[0] ?? "";
  expect(await troupe(["-p", "hi", "-s", "--model", model], options)).toMatchObject({ code: 0, stdout: "Hello.\n" });
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer sk-new", "Bearer sk-new"]);
});

it("troupe login stores nothing when the provider refuses the key, and reports that", async () => {
  await using folder = await tempFolder();
  await using server = await modelServer({ steps: [fails(401)] });
  const options = { cwd: folder.path, home: folder.path, environment: { OPENAI_BASE_URL: server.baseUrl } };
  const refused = await troupe(["login", "openai"], { ...options, stdin: "sk-wrong\n" });
  expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("The key was not stored") });
  expect(refused.stderr).not.toContain("sk-wrong");
  expect(() => statSync(join(folder.path, "providers.json"))).toThrow("ENOENT");
  expect(server.requests).toHaveLength(1);
});

it("troupe logout removes one stored key or all, and names a provider that has a key from elsewhere", async () => {
  await using folder = await tempFolder();
  const path = join(folder.path, "providers.json");
  const other = { baseUrl: "http://127.0.0.1:9/v1", apiKey: "sk-mine", defaultModel: "m" };
  const providers = { other, openai: { apiKey: "sk-1" }, groq: { apiKey: "sk-2" } };
  writeFileSync(path, JSON.stringify({ providers }));
  const options = { cwd: folder.path, home: folder.path, environment: { GROQ_API_KEY: "sk-3" } };
  const one = await troupe(["logout", "openai"], options);
  expect(one).toMatchObject({ code: 0, stdout: "The key of openai is removed.\n", stderr: "" });
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ providers: { ...providers, openai: {} } });
  const all = await troupe(["logout"], options);
  expect(all).toMatchObject({ code: 0, stdout: "The key of groq is removed.\n" });
  expect(all.stderr).toMatch(/groq still has a key, from the environment/);
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ providers: { other, openai: {}, groq: {} } });
  const none = await troupe(["logout", "openai"], options);
  expect(none).toMatchObject({ code: 0, stdout: "No key is stored for openai.\n" });
  const unknown = await troupe(["logout", "nobody"], options);
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("No key can be stored") });
});

it("troupe login lists the providers when none is given, and refuses a key that no header can carry", async () => {
  await using folder = await tempFolder();
  const options = { cwd: folder.path, home: folder.path };
  expect(await troupe(["login"], { ...options, stdin: "x\n" })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("anthropic, openai"),
  });
  const odd = await troupe(["login", "openai"], { ...options, stdin: "sk with spaces\n" });
  expect(odd).toMatchObject({ code: 2, stderr: expect.stringContaining("characters that keys cannot have") });
  const unknown = await troupe(["login", "nobody"], { ...options, stdin: "sk-1\n" });
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("No key can be stored") });
});

it("troupe login works as the sign-in of an editor, which appends login to the agent's command line", async () => {
  await using folder = await tempFolder();
  await using server = await modelServer({ steps: [says("ready")] });
  const options = { cwd: folder.path, home: folder.path, environment: { OPENAI_BASE_URL: server.baseUrl } };
  const stored = await troupe(["--acp", "login", "openai"], { ...options, stdin: "sk-new\n" });
  expect(stored).toMatchObject({ code: 0, stdout: expect.stringContaining("The key is stored.") });
});
