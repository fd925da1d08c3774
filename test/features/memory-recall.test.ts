import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { injectedMemory } from "../../src/context/memory/injected.ts";
import { says } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { accepted, localAt } from "../memory/support.ts";
import { dataOf } from "../support/stage.ts";
import { memoryPart, repository, type Service, service, settings, stores, votes, wholePrompt } from "./memory-stage.ts";
import { of, onStage, resultsOf, type StageOptions, starts, toolNames } from "./stage.ts";

const isSlow = process.env.TROUPE_SLOW === "1";
const on = { context: { memory: { enabled: true } } } as const;
const trusted = { workspace: { trustFolder: true } } as const;
const memoryTools = (request: Parameters<typeof toolNames>[0]): string[] =>
  toolNames(request).filter((name) => name.endsWith("_memory"));

/** One message in such a session; what the main agent was told and given. */
async function told(options: StageOptions) {
  const found: { memories: string; tools: string[]; warnings: string[] }[] = [];
  await onStage([says("ok")], options, async ({ session, first }) => {
    await session.sendAndWait({ prompt: "go" });
    const warnings = dataOf(session.events, "session.warning").map(({ message }) => message);
    found.push({ memories: memoryPart(first("main")), tools: memoryTools(first("main")), warnings });
  });
  return found[0];
}

const withService = ({ url }: Pick<Service, "url">, more: object = {}): StageOptions => ({
  ...on,
  ...trusted,
  files: { ...repository(), ...settings({ store: "service", url, ...more }) },
});

describe("conditions for the memory", () => {
  it("MEM-02 disabling memory by flag, settings or environment removes the section and the tools", async () => {
    const memories = await service(() => ({ body: wholePrompt }));
    const options = withService(memories);
    const nothing = { memories: "", tools: [], warnings: [] };
    const off = (more: object) => ({ ...repository(), ...settings({ store: "service", url: memories.url, ...more }) });
    expect(await told({ ...options, environment: { AGENTIC_MEMORY: "off" } })).toEqual(nothing);
    expect(await told({ ...options, environment: { TROUPE_MEMORY: "off" } })).toEqual(nothing);
    expect(await told({ ...options, files: off({ enabled: false }) })).toEqual(nothing);
    expect(await told({ ...options, context: { memory: { enabled: false } } })).toEqual(nothing);
    const { context: _, ...unasked } = options;
    expect(await told(unasked)).toEqual(nothing);
    expect(memories.requests).toEqual([]);
    const there = { memories: expect.stringContaining("Use tabs."), tools: ["store_memory", "vote_memory"] };
    expect(await told({ ...unasked, environment: { TROUPE_MEMORY: "on" } })).toMatchObject(there);
    expect(await told({ ...unasked, files: off({ enabled: true }) })).toMatchObject(there);
    expect(await told(options)).toMatchObject(there);
  });

  it("MEM-02 a project cannot switch memory on", async () => {
    const files = { ".troupe/settings.json": JSON.stringify({ memory: { enabled: true } }) };
    expect(await told({ ...trusted, files })).toMatchObject({ memories: "", tools: [] });
  });

  it("MEM-03 facts go to the repository's file, without votes, when the flag is on and there is no service", async () => {
    const files = repository();
    const environment = { MEMORY_IN_REPO_STORE: "on" };
    expect(await told({ ...on, files, environment })).toMatchObject({ tools: ["store_memory"] });
    expect(await told({ ...on, files })).toMatchObject({ tools: ["store_memory", "vote_memory"] });
    const memories = await service(() => ({ body: wholePrompt }));
    expect(await told({ ...withService(memories), environment })).toMatchObject({
      tools: ["store_memory", "vote_memory"],
    });
  });

  it("MEM-04 a program's memory is in the system prompt, without a service or a file", async () => {
    const store = injectedMemory({ text: "- The user likes tea.", hasVotes: true });
    expect(await told({ context: { memory: { store } } })).toMatchObject({
      memories: expect.stringContaining("- The user likes tea."),
      tools: ["store_memory", "vote_memory"],
    });
    expect(await told({ context: { memory: { store: injectedMemory() } } })).toMatchObject({
      memories: "",
      tools: ["store_memory"],
    });
  });

  it("memory is disabled with a notice when settings are wrong or an address would reveal the token", async () => {
    for (const [memory, words] of [
      [{ store: "cloud" }, "memory in your settings is not usable"],
      [{ store: "service", url: "http://memory.example" }, "it must begin with https://"],
    ] as const) {
      const found = await told({ ...on, files: settings(memory) });
      expect(found).toMatchObject({ memories: "", tools: [] });
      expect(found?.warnings).toEqual([expect.stringContaining(words)]);
    }
  });
});

describe("recalled facts", () => {
  it("MEM-11 recalled facts are in the system prompt of the main agent and of its subagents, and in no message", async () => {
    const steps = [starts("a", "explore"), says("ok"), of("a", says("done"))];
    await onStage(steps, { ...on, files: repository() }, async ({ session, folder, home, requests, first }) => {
      await localAt(home, folder).store(accepted("Tests run with npm test."));
      await localAt(home, folder).store({ ...accepted("Nobody said yes to this."), status: "proposed" });
      await session.sendAndWait({ prompt: "go" });
      expect(memoryPart(first("main"))).toContain('"Tests run with npm test."');
      expect(memoryPart(first("a"))).toContain('"Tests run with npm test."');
      for (const { system, messages } of requests()) {
        expect(system).not.toContain("Nobody said yes");
        expect(JSON.stringify(messages)).not.toContain("npm test");
      }
      // Reading is for all, writing for the main agent.
      expect(memoryTools(first("main"))).toEqual(["store_memory", "vote_memory"]);
      expect(memoryTools(first("a"))).toEqual([]);
    });
  });

  it("recalled facts keep their place and size in the prompt, and count as used once in a session", async () => {
    await onStage(
      [says("ok"), says("ok")],
      { ...on, files: repository() },
      async ({ session, folder, home, first }) => {
        const memory = localAt(home, folder);
        for (let count = 0; count < 60; count++) {
          await memory.store(accepted(`Fact ${count}: ${"long and winding ".repeat(8)}`));
        }
        await session.sendAndWait({ prompt: "go" });
        await session.sendAndWait({ prompt: "on" });
        const section = memoryPart(first("main"));
        expect(Buffer.byteLength(section)).toBeLessThanOrEqual(4096);
        expect(section).toMatch(/\(\d+ more did not fit here\.\)/);
        await session.close();
        const uses = memory.journals.flatMap((journal) => [...journal.read().facts.values()].map((fact) => fact.uses));
        expect(new Set(uses)).toEqual(new Set([0, 1]));
      },
    );
  });
});

describe("the memory service", () => {
  it("MEM-05 MEM-06 MEM-55 the memory service is asked once, and its whole answer is used", async () => {
    const memories = await service(() => ({ body: wholePrompt }));
    await onStage([says("ok"), says("ok")], withService(memories), async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      await session.sendAndWait({ prompt: "on" });
      expect(memories.requests).toEqual([{ request: "GET /memory/prompt?scope=repository&repo=me%2Fthing" }]);
      expect(memoryPart(first("main"))).toContain('- style: "Use tabs."');
      expect(session.workspace.services?.memories?.()).toBe(1);
      const tool = (name: string) => first("main").tools.find((one) => one.name === name);
      expect(tool("store_memory")?.description).toBe("Keep a fact for the team.\n\nOnly what everyone should know.");
      expect(tool("store_memory")?.parameters).not.toHaveProperty("properties.scope");
      expect(tool("vote_memory")?.description).toBe("Judge a fact of the team.");
    });
  });

  it("MEM-06 MEM-16 the memory service offers only the tools that the answer defines", async () => {
    const { voteDefinition: _, storeDefinition: __, ...readOnly } = wholePrompt;
    const { voteDefinition: ___, ...noVotes } = wholePrompt;
    expect(await told(withService(await service(() => ({ body: noVotes }))))).toMatchObject({
      tools: ["store_memory"],
    });
    expect(await told(withService(await service(() => ({ body: readOnly }))))).toMatchObject({
      tools: [],
      memories: expect.stringContaining("Use tabs."),
    });
  });

  it("MEM-57 the memory service receives the definition version of a call, and a new version changes the tools", async () => {
    const now = { version: 2 };
    const prompt = () => ({
      ...wholePrompt,
      storeDefinition: { version: now.version, description: `Keep a fact (v${now.version}).`, scopes: ["repository"] },
    });
    const memories = await service(
      () => ({ body: prompt() }),
      (body) => (body.definitionVersion === now.version ? {} : { status: 412 }),
    );
    const steps = [stores(), says("ok"), stores({ fact: "Lint first." }), says("ok"), stores({ fact: "Lint first." })];
    await onStage([...steps, votes(), says("ok")], withService(memories), async ({ session, requests }) => {
      const described = () =>
        requests("main")
          .at(-1)
          ?.tools.find(({ name }) => name === "store_memory")?.description;
      await session.sendAndWait({ prompt: "go" });
      now.version = 3;
      await session.sendAndWait({ prompt: "again" });
      expect(resultsOf(session.events, "store_memory")[1]).toMatch(/newer definition of this tool/);
      expect(described()).toMatch(/^Keep a fact \(v2\)/);
      await session.sendAndWait({ prompt: "and again" });
      expect(described()).toMatch(/^Keep a fact \(v3\)/);
      const versions = memories.requests.flatMap(({ request, body }) =>
        request.startsWith("POST") ? [[request, (body as { definitionVersion: number }).definitionVersion]] : [],
      );
      expect(versions).toEqual([
        ["POST /memory", 2],
        ["POST /memory", 2],
        ["POST /memory", 3],
        ["POST /memory/votes", 1],
      ]);
    });
  });

  it("MEM-07 the memory service costs only the memory and a notice when it fails, and the session continues", async () => {
    const memories = await service(() => ({ status: 500, body: {} }));
    const found = await told(withService(memories));
    expect(found).toMatchObject({ memories: "", tools: [] });
    expect(found?.warnings).toEqual([
      "There is no memory in this session: the memory service failed, it answered with status 500.",
    ]);
    expect(memories.requests).toHaveLength(1);
  });

  it.runIf(isSlow)(
    "the memory service delays the first turn by three seconds at most, counted from the start of the session",
    async () => {
      const memories = await service(() => new Promise(() => undefined));
      await onStage([says("ok")], withService(memories), async ({ session, first }) => {
        const began = performance.now();
        await session.sendAndWait({ prompt: "go" });
        expect(performance.now() - began).toBeLessThan(4_500);
        expect(memoryPart(first("main"))).toBe("");
        expect(dataOf(session.events, "session.warning")).toMatchObject([
          { warningType: "memory", message: expect.stringContaining("it did not answer within 3000 ms") },
        ]);
      });
    },
  );

  it("the memory service does not block a caller that cancels its wait", async () => {
    const memories = await service(() => new Promise(() => undefined));
    await onStage([], withService(memories), async ({ session }) => {
      const outcome = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => memories.requests.length).toBe(1);
      session.abort();
      expect((await outcome).kind).toBe("aborted");
      // It did not even wait until the service counts as too slow: nothing says that it is.
      expect(dataOf(session.events, "session.warning")).toEqual([]);
    });
  });

  it("MEM-08 the memory service is asked once per repository by two sessions, and late answers are ignored", async () => {
    const late: (() => void)[] = [];
    const about = (name: string | null) => ({ body: { ...wholePrompt, memoriesContext: `about ${name}` } });
    const memories = await service((query) =>
      query.get("repo") === "me/slow"
        ? new Promise((resolve) => late.push(() => resolve(about("me/slow"))))
        : about(query.get("repo")),
    );
    await using root = await tempFolder();
    await using server = await modelServer({ steps: [says("1"), says("2"), says("3")], models: ["large"] });
    const [folder, home] = [root.at("work"), root.at("home")];
    const put = (path: string, text: string): void => {
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, text);
    };
    const become = (name: string): void => {
      for (const [path, text] of Object.entries(repository(name))) put(join(folder, path), text);
    };
    const provider = { type: "openai", baseUrl: server.baseUrl, auth: "none", models: { large: {} } };
    put(join(home, "providers.json"), JSON.stringify({ providers: { alpha: provider } }));
    put(join(home, "settings.json"), JSON.stringify({ memory: { store: "service", url: memories.url } }));
    become("me/thing");
    const runtime = createRuntime({ environment: { HOME: root.path, TROUPE_SANDBOX: "off" }, home });
    const request = { cwd: folder, model: { name: "alpha/large" }, ...on, ...trusted };
    const shown = () => server.requests.map(({ request: one }) => /about [\w/]+/.exec(one?.system ?? "")?.[0]);
    const asked = () => memories.requests.map((one) => /repo=(.*)$/.exec(one.request)?.[1]);

    const one = await runtime.createSession(request);
    const two = await runtime.createSession(request);
    await Promise.all([one.sendAndWait({ prompt: "go" }), two.sendAndWait({ prompt: "go" })]);
    expect(shown()).toEqual(["about me/thing", "about me/thing"]);
    expect(asked()).toEqual(["me%2Fthing"]);

    become("me/slow");
    const three = await runtime.createSession(request);
    await expect.poll(asked).toEqual(["me%2Fthing", "me%2Fslow"]);
    become("me/other");
    await three.sendAndWait({ prompt: "go" });
    for (const answer of late) answer();
    expect(asked()).toEqual(["me%2Fthing", "me%2Fslow", "me%2Fother"]);
    expect(shown().at(-1)).toBe("about me/other");
    for (const session of [one, two, three]) await session.close();
    await runtime.close();
  });

  it("MEM-09 the memory service is not asked when there is no repository and it stores no facts about users", async () => {
    const memories = await service(() => ({ body: wholePrompt }));
    const files = (more: object = {}) => settings({ store: "service", url: memories.url, ...more });
    expect(await told({ ...on, ...trusted, files: files() })).toEqual({ memories: "", tools: [], warnings: [] });
    expect(memories.requests).toEqual([]);
    await told({ ...on, ...trusted, files: files({ userScope: true }) });
    await told({ ...on, ...trusted, files: files(), environment: { AGENTIC_MEMORY_USER_SCOPED: "on" } });
    expect(memories.requests.map(({ request }) => request)).toEqual(Array(2).fill("GET /memory/prompt?scope=user"));
  });

  it("MEM-10 the memory service is not asked without a repository when it needs one", async () => {
    const memories = await service(() => ({ body: wholePrompt }));
    const files = settings({ store: "service", url: memories.url, userScope: true, needsRepository: true });
    expect(await told({ ...on, ...trusted, files })).toMatchObject({ memories: "", tools: [] });
    expect(memories.requests).toEqual([]);
  });

  it("the memory service is not asked about a folder's stated origin before the user trusts the folder", async () => {
    const memories = await service(() => ({ body: wholePrompt }));
    const { workspace: _, ...untrusted } = withService(memories);
    const found = await told(untrusted);
    expect(found).toMatchObject({ memories: "", tools: [] });
    expect(found?.warnings).toEqual([
      expect.stringContaining("is not asked about me/thing: this folder is not trusted"),
    ]);
    expect(memories.requests).toEqual([]);
  });
});
