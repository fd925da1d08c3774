import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { injectedMemory } from "../../src/context/memory/injected.ts";
import type { Fact } from "../../src/context/memory/memory.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { accepted, KNOWN_SECRET, localAt, SHAPED_SECRET } from "../memory/support.ts";
import { dataOf } from "../support/stage.ts";
import {
  input,
  memoryPart,
  person,
  repository,
  service,
  settings,
  stores,
  votes,
  wholePrompt,
} from "./memory-stage.ts";
import { of, onStage, resultsOf, type StageOptions, starts } from "./stage.ts";

/** Memory on, and nothing allowed beforehand. */
const on: StageOptions = { context: { memory: { enabled: true } }, permissions: {}, files: repository() };
const allowed: StageOptions = { ...on, permissions: { allTools: true } };

function facts(home: string, folder: string): Fact[] {
  return localAt(home, folder).journals.flatMap((journal) => [...journal.read().facts.values()]);
}

/** One message, this one call; what became of it. */
async function outcome(step: Parameters<typeof onStage>[0][number], options: StageOptions, before?: Before) {
  const found: { result: string; success: boolean | undefined; facts: Fact[] }[] = [];
  await onStage([step, says("ok")], options, async (stage) => {
    await before?.(stage);
    const { session, home, folder } = stage;
    await session.sendAndWait({ prompt: "go" });
    const [{ success } = { success: undefined }] = dataOf(session.events, "tool.execution_complete");
    const [result = ""] = [...resultsOf(session.events, "store_memory"), ...resultsOf(session.events, "vote_memory")];
    found.push({ result, success, facts: facts(home, folder) });
  });
  return found[0] ?? { result: "", success: undefined, facts: [] };
}
type Before = (stage: Parameters<Parameters<typeof onStage>[2]>[0]) => unknown;

describe("store_memory", () => {
  it("MEM-12 store_memory has four required inputs, and a scope when the store has several", async () => {
    const seen: object[] = [];
    const steps = [says("ok")];
    const parameters = (tools: readonly { name: string; parameters: object }[]) =>
      tools.find(({ name }) => name === "store_memory")?.parameters ?? {};
    for (const environment of [{}, { MEMORY_IN_REPO_STORE: "on" }]) {
      await onStage(steps, { ...on, environment }, async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        seen.push(parameters(first("main").tools));
      });
    }
    const required = ["subject", "fact", "citations", "reason"];
    expect(seen[0]).toMatchObject({ required, properties: { scope: { enum: ["repository", "user"] } } });
    expect(seen[1]).toMatchObject({ required });
    expect(seen[1]).not.toHaveProperty("properties.scope");
  });

  it("store_memory stores the source, author, scope and evidence of a fact", async () => {
    await onStage([stores({ scope: "user" }), says("ok")], on, async ({ session, home, folder }) => {
      person(session);
      await session.sendAndWait({ prompt: "go" });
      expect(facts(home, folder)).toMatchObject([
        {
          ...input,
          scope: "user",
          place: "user",
          author: "agent",
          source: { kind: "tool", detail: session.id },
          status: "accepted",
          uses: 0,
          votes: { up: 0, down: 0 },
        },
      ]);
    });
  });

  it("MEM-13 store_memory masks secrets before it reads the inputs, asks the user and stores", async () => {
    const fact = `Deploy with ${KNOWN_SECRET} or ${SHAPED_SECRET} on Mondays.`;
    const options = { ...on, environment: { DEPLOY_PASSWORD: KNOWN_SECRET } };
    await onStage([stores({ fact }), says("ok")], options, async ({ session, home, folder }) => {
      const shown = person(session);
      await session.sendAndWait({ prompt: "go" });
      const masked = /^Deploy with \[redacted:DEPLOY_PASSWORD\] or \[redacted:[\w.-]+\] on Mondays\.$/;
      expect(shown).toMatchObject([{ kind: "memory", fact: expect.stringMatching(masked) }]);
      expect(facts(home, folder)).toMatchObject([{ fact: expect.stringMatching(masked), status: "accepted" }]);
    });
    // Masked first: what is then too short, or nothing, is refused for that reason.
    expect(await outcome(stores({ fact: SHAPED_SECRET }), allowed)).toMatchObject({
      result: "Invalid inputs: it contains nothing but a secret.",
      facts: [],
    });
  });

  it("MEM-14 store_memory fails with distinct errors that the model can act on", async () => {
    const { facts: _, ...inputs } = await outcome(stores({ fact: 5 }), allowed);
    expect(inputs).toEqual({ success: false, result: expect.stringMatching(/^Invalid inputs: /) });
    expect(await outcome(stores({ scope: "galaxy" }), allowed)).toMatchObject({
      success: false,
      result: 'Invalid scope: "galaxy". It can be repository or user.',
    });
    const place = { folder: "" };
    /** The folder becomes another repository while the model thinks. */
    const moved = () => {
      writeFileSync(join(place.folder, ".git/config"), repository("me/other")[".git/config"] ?? "");
      return stores();
    };
    const trusted = { ...allowed, workspace: { trustFolder: true } };
    expect(await outcome(moved, trusted, ({ folder }) => Object.assign(place, { folder }))).toMatchObject({
      success: false,
      result: expect.stringMatching(/^Missing client: this folder belongs to another repository/),
      facts: [],
    });
    expect(await outcome(stores(), on)).toMatchObject({
      success: false,
      result: expect.stringMatching(/^Permission denied and could not request permission .*--allow-tool memory\.$/),
      facts: [],
    });
    const refusing = await service(() => ({ body: wholePrompt }), { status: 403, body: {} });
    const files = { ...repository(), ...settings({ store: "service", url: refusing.url }) };
    expect(await outcome(stores(), { ...trusted, files })).toMatchObject({
      success: false,
      result: "You may not write to the memory of me/thing.",
    });
    expect(await outcome(stores(), allowed)).toMatchObject({ success: true });
  });

  it("store_memory is given to the main agent alone, even if an agent lists it", async () => {
    const definition = { name: "keeper", description: "keeps", prompt: "Keep.", tools: ["view", "store_memory"] };
    const steps = [starts("a", "keeper"), says("ok"), of("a", stores(), says("done"))];
    const options = { ...allowed, workspace: { agents: [definition] } };
    await onStage(steps, options, async ({ session, home, folder, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(first("a").tools.map(({ name }) => name)).not.toContain("store_memory");
      expect(resultsOf(session.events, "store_memory")).toEqual([expect.stringMatching(/no tool|not exist|unknown/i)]);
      expect(facts(home, folder)).toEqual([]);
    });
  });

  it("store_memory sends everything that is known of the fact to the service", async () => {
    const memories = await service(() => ({ body: wholePrompt }), {
      status: 201,
      body: { id: "m1", status: "proposed" },
    });
    const files = { ...repository(), ...settings({ store: "service", url: memories.url }) };
    const options = { ...allowed, files, workspace: { trustFolder: true } };
    await onStage([stores(), votes({ fact: "Use tabs." }), says("ok")], options, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "store_memory")).toEqual([
        expect.stringContaining("Stored as a proposal (m1)."),
      ]);
      const repo = "me/thing";
      const source = { kind: "tool", detail: session.id };
      expect(memories.requests.slice(1)).toEqual([
        {
          request: "POST /memory",
          body: {
            ...input,
            scope: "repository",
            repo,
            status: "proposed",
            author: "agent",
            source,
            definitionVersion: 2,
          },
        },
        {
          request: "POST /memory/votes",
          body: {
            fact: "Use tabs.",
            direction: "upvote",
            reason: "Seen.",
            voter: `agent:${session.id}`,
            repo,
            definitionVersion: 1,
          },
        },
      ]);
    });
  });
});

describe("vote_memory", () => {
  it("MEM-15 vote_memory counts up and down for the exact fact, and refuses any other direction", async () => {
    const seeded: Before = ({ home, folder }) => localAt(home, folder).store(accepted(input.fact));
    for (const [direction, counts] of [
      ["upvote", { up: 1, down: 0 }],
      ["downvote", { up: 0, down: 1 }],
    ] as const) {
      const { result, facts: kept } = await outcome(votes({ direction }), allowed, seeded);
      expect(result).toBe(`Your ${direction} is counted.`);
      expect(kept).toMatchObject([{ votes: { ...counts, by: [{ direction, reason: "Seen." }] } }]);
    }
    expect(await outcome(votes({ direction: "sideways" }), allowed, seeded)).toMatchObject({
      success: false,
      result: expect.stringMatching(/^Invalid inputs: /),
    });
    expect(await outcome(votes({ fact: "Tests run with make." }), allowed, seeded)).toMatchObject({
      success: false,
      result: expect.stringMatching(/^There is no such fact in the memory\./),
    });
  });

  it("MEM-16 vote_memory is not offered when the store takes no votes, and a call then fails", async () => {
    const options = { ...allowed, environment: { MEMORY_IN_REPO_STORE: "on" } };
    const seeded: Before = ({ home, folder }) => localAt(home, folder).store(accepted(input.fact));
    const { success, facts: kept } = await outcome(votes(), options, seeded);
    expect(success).toBe(false);
    expect(kept).toMatchObject([{ votes: { up: 0, down: 0 } }]);
    expect(await outcome(votes(), { ...allowed, context: { memory: { store: injectedMemory() } } })).toMatchObject({
      success: false,
    });
  });
});

describe("memories in the repository", () => {
  const FILE = ".github/copilot-memories.jsonl";
  const inRepository: StageOptions = { ...on, environment: { MEMORY_IN_REPO_STORE: "on" } };
  const lines = (folder: string) =>
    readFileSync(join(folder, FILE), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it("MEM-17 MEM-18 MEM-19 memories are written to the repository when the session ends, one object per line", async () => {
    const other = { fact: "Lint with npm run check." };
    const steps = [stores(), stores(other), says("ok")];
    await onStage(steps, inRepository, async ({ session, folder }) => {
      person(session);
      await session.sendAndWait({ prompt: "go" });
      expect(existsSync(join(folder, FILE))).toBe(false);
      await session.close();
      const source = { kind: "tool", detail: session.id };
      expect(lines(folder)).toEqual([
        { id: expect.stringMatching(/^[\w-]{4,}$/), ...input, source },
        { id: expect.stringMatching(/^[\w-]{4,}$/), ...input, ...other, source },
      ]);
    });
  });

  it("MEM-17 memories in the repository are only facts that the user accepted, and keep foreign lines", async () => {
    const theirs = '{"id":"t1","subject":"style","fact":"Use tabs.","citations":"x","reason":"y","source":{}}\n';
    const options = { ...inRepository, permissions: { allTools: true } };
    await onStage([stores(), says("ok")], { ...options, files: { ...repository(), [FILE]: theirs } }, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      await stage.session.close();
      expect(readFileSync(join(stage.folder, FILE), "utf8")).toBe(theirs);
      // What stands in a file is nobody's word until a person takes it.
      expect(memoryPart(stage.first("main"))).toBe("");
    });
    await onStage(
      [stores(), says("ok")],
      { ...inRepository, files: { ...repository(), [FILE]: theirs } },
      async (stage) => {
        person(stage.session);
        await stage.session.sendAndWait({ prompt: "go" });
        await stage.session.close();
        expect(lines(stage.folder).map(({ fact }) => fact)).toEqual(["Use tabs.", input.fact]);
      },
    );
  });

  const similar = [stores({ fact: "Tests run with npm test." }), stores({ fact: "Run the tests by npm test." })];
  const merging: StageOptions = {
    ...on,
    files: { ...repository(), ...settings({ store: "repository-file", merge: true }) },
  };
  const merge = async (answer: string) => {
    const found: unknown[] = [];
    await onStage([...similar, says("ok"), says(answer)], merging, async ({ session, folder, requests }) => {
      person(session);
      await session.sendAndWait({ prompt: "go" });
      await session.close();
      found.push(...lines(folder).map(({ fact }) => fact));
      expect(requests().at(-1)).toMatchObject({
        tools: [],
        messages: [{ content: expect.stringContaining("npm test") }],
      });
      // What it cost is in the totals of the session.
      expect(dataOf(session.events, "troupe.usage").map(({ turnId }) => turnId)).toEqual(["0", "1", "2", "memory"]);
      const order = session.events.map(({ type }) => type);
      expect(order.indexOf("session.shutdown")).toBeGreaterThan(order.lastIndexOf("troupe.usage"));
    });
    return found;
  };

  it("MEM-19 memories with the same meaning are merged in the repository when a model for merging is set", async () => {
    const one = JSON.stringify({ ...input, fact: "Run the tests with npm test." });
    expect(await merge(`\`\`\`\n${one}\n\`\`\``)).toEqual(["Run the tests with npm test."]);
  });

  it.each([
    ["says something else", "I merged them for you."],
    ["adds", [1, 2, 3].map((count) => JSON.stringify({ ...input, fact: `New ${count}.` })).join("\n")],
    ["gives a secret", JSON.stringify({ ...input, fact: `Use ${SHAPED_SECRET} to test.` })],
    ["drops all", ""],
  ])("MEM-19 memories in the repository stay unmerged when the model for merging %s", async (_, answer) => {
    expect(await merge(answer || " ")).toEqual(["Tests run with npm test.", "Run the tests by npm test."]);
  });
});

describe("permission", () => {
  it("MEM-20 permission for memory has one kind, which all three names mean, and a denial wins", async () => {
    const seeded: Before = ({ home, folder }) => localAt(home, folder).store(accepted("Use tabs."));
    const vote = votes({ fact: "Use tabs." });
    const rules = (allowTools: string[], denyTools: string[] = []) => ({
      ...on,
      permissions: { allowTools, denyTools },
    });
    const isDone = async (step: typeof vote, options: StageOptions) => (await outcome(step, options, seeded)).success;
    expect(await isDone(stores(), rules(["memory"]))).toBe(true);
    expect(await isDone(vote, rules(["memory"]))).toBe(true);
    expect(await isDone(stores(), rules(["store_memory"]))).toBe(true);
    expect(await isDone(vote, rules(["vote_memory"]))).toBe(true);
    expect(await isDone(stores(), rules(["memory"], ["store_memory"]))).toBe(false);
    expect(await isDone(vote, rules(["memory"], ["vote_memory"]))).toBe(false);
    const denied = { ...allowed, permissions: { allTools: true, denyTools: ["memory"] } };
    expect(await isDone(stores(), denied)).toBe(false);
    expect(await isDone(vote, denied)).toBe(false);
    expect(await outcome(stores(), denied)).toMatchObject({ result: expect.stringMatching(/^Permission denied: /) });
    const events: unknown[] = [];
    await onStage([stores(), says("ok")], rules(["store_memory"]), async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      events.push(...dataOf(session.events, "troupe.permission"));
    });
    expect(events).toMatchObject([{ kind: "memory", decision: "allowed", by: "rule", rule: "store_memory" }]);
  });

  it("MEM-21 a session's permission {kind:memory} covers the next call, and its fact is a proposal", async () => {
    const steps = [stores(), stores({ fact: "Lint with npm run check." }), says("ok")];
    await onStage(steps, on, async ({ session, home, folder, reopen }) => {
      const shown = person(session, { kind: "approved-for-session", approval: { kind: "memory" } });
      await session.sendAndWait({ prompt: "go" });
      expect(shown).toHaveLength(1);
      expect(session.permissions.grants.sessionApprovals).toEqual([{ kind: "memory" }]);
      expect(facts(home, folder).map(({ fact, status }) => [fact, status])).toEqual([
        [input.fact, "accepted"],
        ["Lint with npm run check.", "proposed"],
      ]);
      expect((await reopen()).permissions.grants.locationApprovals).toEqual([]);
    });
  });

  it("MEM-21 permission {kind:memory} is stored for a location, and applies to the next session there", async () => {
    const steps = [stores(), says("ok"), stores({ fact: "Lint with npm run check." }), says("ok")];
    await onStage(steps, on, async ({ session, home, folder, reopen }) => {
      person(session, { kind: "approved-for-location", approval: { kind: "memory" }, locationKey: folder });
      await session.sendAndWait({ prompt: "go" });
      const again = await reopen();
      expect(again.permissions.grants.locationApprovals).toEqual([{ kind: "memory" }]);
      await again.sendAndWait({ prompt: "more" });
      expect(facts(home, folder).map(({ status }) => status)).toEqual(["accepted", "proposed"]);
    });
  });

  it("MEM-22 a memory permission request shows fact, citations and scope, or the vote and its reason", async () => {
    await onStage([stores({ scope: "user" }), votes(), stores(), says("ok")], on, async ({ session }) => {
      const shown = person(session);
      await session.sendAndWait({ prompt: "go" });
      const { reason, ...rest } = input;
      const store = { kind: "memory", action: "store", ...rest, toolCallId: expect.any(String) };
      expect(shown).toEqual([
        { ...store, scope: "user", reason },
        {
          ...{ kind: "memory", action: "vote", fact: input.fact, direction: "upvote", reason: "Seen." },
          toolCallId: expect.any(String),
        },
        { ...store, scope: "repository", reason },
      ]);
    });
  });

  it("hooks are asked for memory permission by the tools' names, and a hook's approval makes a proposal", async () => {
    const keep = 'cat >> asked.jsonl; echo >> asked.jsonl; echo \'{"behavior":"allow"}\'';
    const hooks = { version: 1, hooks: { permissionRequest: [{ type: "command", bash: keep }] } };
    const files = { ...repository(), "home:hooks/hooks.json": JSON.stringify(hooks) };
    await onStage([stores(), votes(), says("ok")], { ...on, files }, async ({ session, home, folder }) => {
      await session.sendAndWait({ prompt: "go" });
      const { subject, fact, citations } = input;
      const asked = readFileSync(join(folder, "asked.jsonl"), "utf8").trim().split(/\n+/);
      expect(asked.map((line) => JSON.parse(line) as object)).toMatchObject([
        { toolName: "store_memory", toolInput: { subject, fact, citations } },
        { toolName: "vote_memory", toolInput: { fact, direction: "upvote", reason: "Seen." } },
      ]);
      expect(facts(home, folder)).toMatchObject([{ status: "proposed", votes: { up: 1 } }]);
    });
  });

  it("a memory tool requires permission: nothing is stored when the user denies it", async () => {
    await onStage([stores(), says("ok")], on, async ({ session, home, folder }) => {
      person(session, { kind: "denied-interactively-by-user", feedback: "That is not so." });
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "store_memory")).toEqual([expect.stringContaining("That is not so.")]);
      expect(facts(home, folder)).toEqual([]);
    });
  });
});

describe("later sessions", () => {
  it("later sessions receive exactly the facts that the user accepted, at once or later", async () => {
    const proposed = { fact: "Lint with npm run check." };
    const steps = [
      calls(["store_memory", input], ["store_memory", { ...input, ...proposed }]),
      says("ok"),
      says("hello"),
    ];
    await onStage(steps, on, async ({ session, requests, reopen }) => {
      session.requests.attach({
        kinds: ["permission"],
        handle: async (request) =>
          request.kind === "permission" && request.permissionRequest.kind === "memory"
            ? request.permissionRequest.fact === input.fact
              ? { kind: "approved" as const }
              : { kind: "denied-interactively-by-user" as const, feedback: "No." }
            : undefined,
      });
      await session.sendAndWait({ prompt: "go" });
      await (await reopen()).sendAndWait({ prompt: "again" });
      const last = requests().at(-1);
      expect(last && memoryPart(last)).toContain(input.fact);
      expect(last && memoryPart(last)).not.toContain(proposed.fact);
    });
  });
});
