import { expect, test } from "vitest";
import { type AgentMemoryOptions, agentMemory, personApprovals } from "../../src/context/memory/agent-memory.ts";
import { injectedMemory } from "../../src/context/memory/injected.ts";
import { type MemoryStore, memoryLimits } from "../../src/context/memory/memory.ts";
import { systemPrompt } from "../../src/context/system-prompt.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { storeMemoryTool } from "../../src/tools/memory/store-memory.ts";
import { voteMemoryTool } from "../../src/tools/memory/vote-memory.ts";
import { contentOf, contextFor, failureOf } from "../tools/workspace.ts";
import { draft, KNOWN_SECRET, localAt, ports, SHAPED_SECRET, toldAt } from "./support.ts";

const input = {
  subject: "testing",
  fact: "Tests run with npm test.",
  citations: "package.json:12",
  reason: "Every session needs it.",
};
const context = contextFor("/");

type Changes = Partial<Omit<AgentMemoryOptions, "store"> & { store: MemoryStore }>;

function agentFor({ store = injectedMemory({ hasVotes: true }), ...changes }: Changes = {}) {
  return agentMemory({
    store: () => store,
    redactor: ports().redactor,
    sessionId: "session-1",
    isApproved: () => false,
    ...changes,
  });
}

const propertiesOf = (parameters: object): Record<string, unknown> =>
  "properties" in parameters ? (parameters.properties as Record<string, unknown>) : {};

test("MEM-12 store_memory takes subject, fact, citations and reason, and a scope where there are several", () => {
  const tool = storeMemoryTool(agentFor());
  expect(tool.parameters).toMatchObject({
    required: ["subject", "fact", "citations", "reason"],
    properties: { fact: { maxLength: memoryLimits.fact }, scope: { enum: ["repository", "user"] } },
  });
  const single = storeMemoryTool(agentFor({ definitions: () => ({ store: { scopes: ["repository"] } }) }));
  expect(Object.keys(propertiesOf(single.parameters))).toEqual(["subject", "fact", "citations", "reason"]);
});

test("MEM-13 secrets are masked before any other step, also in the permission request", async () => {
  const store = injectedMemory();
  const tool = storeMemoryTool(agentFor({ store }));
  const secret = { ...input, fact: `Deploy with ${KNOWN_SECRET} or ${SHAPED_SECRET} on Mondays.` };
  const [access] = await tool.bind(secret).access(context);
  expect(JSON.stringify(access)).not.toMatch(new RegExp(`${KNOWN_SECRET}|${SHAPED_SECRET}`));
  await contentOf(tool, secret, context);
  expect(store.stored[0]?.fact).toMatch(
    /^Deploy with \[redacted:DEPLOY_PASSWORD\] or \[redacted:[\w.-]+\] on Mondays\.$/,
  );
  expect(await failureOf(tool, { ...input, fact: KNOWN_SECRET }, context)).toMatchObject({
    message: "Invalid inputs: it contains nothing but a secret.",
  });
});

test("MEM-14 memory tools distinguish errors: inputs, scope, no client", async () => {
  const tool = storeMemoryTool(agentFor());
  const failures = [
    await failureOf(tool, { ...input, fact: 5 }, context),
    await failureOf(tool, { ...input, fact: "x".repeat(memoryLimits.fact + 1) }, context),
    await failureOf(tool, { ...input, scope: "galaxy" }, context),
    await failureOf(storeMemoryTool(agentFor({ missing: () => "no service is set up." })), input, context),
  ];
  expect(failures.map(({ message }) => message.split(":")[0])).toEqual([
    "Invalid inputs",
    "Invalid inputs",
    "Invalid scope",
    "Missing client",
  ]);
  expect(failures.map(({ code }) => code)).toEqual(Array(4).fill("failure"));
});

test("MEM-15 MEM-16 vote_memory takes an exact fact, a direction and a reason, and only where votes are supported", async () => {
  const store = injectedMemory({ hasVotes: true });
  const tool = voteMemoryTool(agentFor({ store }));
  const vote = { fact: "Use tabs.", direction: "downvote", reason: "The linter says spaces." };
  expect(await contentOf(tool, vote, context)).toBe("Your downvote is counted.");
  expect(store.votes).toEqual([{ ...vote, voter: "agent:session-1" }]);
  expect((await failureOf(tool, { ...vote, direction: "sideways" }, context)).message).toMatch(/^Invalid inputs/);
  const without = agentFor({ store: injectedMemory() });
  expect(without.canVote).toBe(false);
  expect((await failureOf(voteMemoryTool(without), vote, context)).message).toBe("This memory does not take votes.");
});

test("MEM-22 the permission request shows what would be stored and where, or the vote", async () => {
  expect(
    await storeMemoryTool(agentFor())
      .bind({ ...input, scope: "user" })
      .access(context),
  ).toEqual([{ kind: "memory", action: "store", ...input, scope: "user" }]);
  const vote = { fact: "Use tabs.", direction: "upvote", reason: "Seen." };
  expect(await voteMemoryTool(agentFor()).bind(vote).access(context)).toEqual([
    { kind: "memory", action: "vote", ...vote },
  ]);
});

test("a call that a rule allowed stores a proposal, and one that a person approved stores an accepted fact", async () => {
  await using folder = await tempFolder();
  const store = localAt(folder.at("home"), folder.at("work"));
  const approved = new Set(["call_2"]);
  const tool = storeMemoryTool(agentFor({ store, isApproved: (id) => approved.has(id) }));
  expect(await contentOf(tool, input, context)).toMatch(/^Stored as a proposal \([\w-]+\)\. .*troupe memory accept/);
  expect(await toldAt(store)).toBe("");
  const second = contextFor("/", { toolCallId: "call_2" });
  expect(await contentOf(tool, { ...input, fact: "Lint with npm run check." }, second)).toMatch(/^Stored \(/);
  expect(await toldAt(store)).toContain("Lint with npm run check.");
  expect(await toldAt(store)).not.toContain("npm test");
});

test("a fact is accepted only by a person's verdict on this very call", () => {
  const approvals = personApprovals();
  const verdict = (toolCallId: string, changes: object = {}) => {
    const data = {
      toolCallId,
      toolName: "store_memory",
      kind: "memory",
      decision: "allowed",
      by: "person",
      reason: "",
    };
    approvals.onEvent({ type: "troupe.permission", data: { ...data, ...changes } } as Parameters<
      typeof approvals.onEvent
    >[0]);
  };
  verdict("seen");
  for (const by of ["rule", "session", "location", "mode", "hook"]) verdict(`by-${by}`, { by });
  verdict("declined", { decision: "denied" });
  verdict("another-kind", { kind: "write" });
  const calls = [
    "seen",
    "by-rule",
    "by-session",
    "by-location",
    "by-mode",
    "by-hook",
    "declined",
    "another-kind",
    "never",
  ];
  expect(calls.filter((call) => approvals.isApproved(call))).toEqual(["seen"]);
  expect(approvals.isApproved("seen")).toBe(false);
});

test("a session has one vote for a fact, and may change it", async () => {
  await using folder = await tempFolder();
  const store = localAt(folder.at("home"), folder.at("work"));
  await store.store(draft("Use tabs."));
  const tool = voteMemoryTool(agentFor({ store }));
  const vote = { fact: "Use tabs.", direction: "upvote", reason: "Seen." };
  await contentOf(tool, vote, context);
  expect((await failureOf(tool, vote, context)).message).toBe("This session has already voted on the fact: upvote.");
  await contentOf(tool, { ...vote, direction: "downvote" }, context);
  const votes = store.journals.flatMap((journal) => [...journal.read().facts.values()].map((fact) => fact.votes));
  expect(votes).toMatchObject([{ up: 0, down: 1, by: [{ direction: "downvote" }] }]);
  expect((await failureOf(tool, { ...vote, fact: "Use nothing." }, context)).message).toMatch(/^There is no such fact/);
});

test("one session can store only a limited number of facts", async () => {
  const tool = storeMemoryTool(agentFor());
  for (let count = 0; count < 20; count++) await contentOf(tool, { ...input, fact: `Fact number ${count}.` }, context);
  expect((await failureOf(tool, input, context)).message).toBe("A session can add 20 facts to the memory at most.");
});

test("MEM-55 the service's storage instructions are in the description, bounded", () => {
  const definitions = () => ({
    store: { scopes: ["repository"] as const },
    storeInstructions: `Be brief. ${"x".repeat(5000)}`,
  });
  const memory = agentFor({ definitions });
  const tool = storeMemoryTool(memory);
  expect(tool.description).toContain("Be brief.");
  expect(tool.description.length).toBeLessThanOrEqual(1200);
  expect(memory.canVote).toBe(false);
  expect(memory.scopes).toEqual(["repository"]);
});

test("MEM-04 an injected memory is in the system prompt, without files or network", async () => {
  const { text } = await injectedMemory({ text: "- The user likes tea." }).recall();
  const prompt = systemPrompt({ context: { cwd: "/" }, platform: "linux", tools: [], ...(text && { memories: text }) });
  expect(prompt).toContain("- The user likes tea.");
  expect((await injectedMemory().recall()).text).toBeUndefined();
});
