import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import type { MemoryStore } from "../../src/context/memory/memory.ts";
import { serviceMemory } from "../../src/context/memory/service.ts";
import { says } from "../../src/model/faux/faux-step.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { input, memoryPart, person, repository, settings, stores, votes } from "../features/memory-stage.ts";
import { onStage, resultsOf } from "../features/stage.ts";
import { accepted, draft, ports } from "./support.ts";

async function startServer(file: string): Promise<{ url: string; process: ChildProcess }> {
  const environment = { PATH: process.env.PATH, MEMORY_TOKEN: "agents", MEMORY_ADMIN_TOKEN: "people" };
  const server = spawn(process.execPath, ["examples/memory-server/server.mjs", "--port", "0", "--file", file], {
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void server.kill());
  const [line] = await once(server.stdout, "data");
  return { url: String(line).trim(), process: server };
}

test("the reference server keeps the contract: proposals wait for a person, and repositories do not mix", async () => {
  await using folder = await tempFolder();
  const { url } = await startServer(folder.at("memories.json"));
  const at = (repository: string, token = "agents"): MemoryStore =>
    serviceMemory({ url, token, repository, hasUserScope: true, ...ports() });
  const memory = at("me/thing");
  const first = await memory.recall();
  expect(first).toMatchObject({ count: 0, definitions: { vote: {}, store: { scopes: ["repository", "user"] } } });
  expect(first.text).toBeUndefined();

  const proposal = await memory.store(draft("Use tabs."));
  expect(proposal.outcome).toBe("proposed");
  expect((await memory.recall()).count).toBe(0);
  expect(await memory.store(draft("Use tabs."))).toEqual({ id: proposal.id, outcome: "known" });
  expect((await memory.store(accepted("Tests run with npm test."))).outcome).toBe("accepted");

  const accept = (token: string) =>
    fetch(`${url}/memory/accept`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ id: proposal.id }),
    });
  expect((await accept("agents")).status).toBe(403);
  expect((await accept("people")).status).toBe(200);
  const told = await at("me/thing").recall();
  expect(told.count).toBe(2);
  expect(told.text).toContain('"Use tabs."');
  expect(await at("me/other").recall()).toMatchObject({ count: 0 });

  const vote = { fact: "Use tabs.", direction: "upvote", reason: "Seen.", voter: "agent:1" } as const;
  await memory.vote(vote);
  await expect(memory.vote(vote)).rejects.toThrow("is already stored");
  await expect(at("me/thing", "wrong").store(draft("Nobody."))).rejects.toThrow("did not accept your credentials");
  expect(await folder.read("memories.json")).toContain("Use tabs.");
});

test("sessions share facts on the server: those that a person approves at once, the others once they are accepted", async () => {
  await using folder = await tempFolder();
  const { url } = await startServer(folder.at("memories.json"));
  const options = {
    context: { memory: { enabled: true } },
    permissions: {},
    workspace: { trustFolder: true },
    environment: { TEAM_MEMORY_TOKEN: "agents" },
    files: {
      ...repository(),
      ...settings({ store: "service", url, tokenVariable: "TEAM_MEMORY_TOKEN", userScope: true }),
    },
  };
  await onStage([stores(), votes(), says("ok")], options, async ({ session }) => {
    person(session);
    await session.sendAndWait({ prompt: "go" });
    expect(resultsOf(session.events, "store_memory")).toEqual([expect.stringMatching(/^Stored \(/)]);
    expect(resultsOf(session.events, "vote_memory")).toEqual(["Your upvote is counted."]);
    expect(JSON.stringify(session.events)).not.toContain("Bearer agents");
  });
  const rule = { permissions: { allTools: true } };
  await onStage([stores({ fact: "Use tabs." }), says("ok")], { ...options, ...rule }, async ({ session, first }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(memoryPart(first("main"))).toContain(input.fact);
    expect(first("main").tools.find(({ name }) => name === "store_memory")?.description).toContain(
      "This memory is shared",
    );
    expect(resultsOf(session.events, "store_memory")).toEqual([expect.stringMatching(/^Stored as a proposal/)]);
  });
  await onStage([says("ok")], options, async ({ session, first }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(memoryPart(first("main"))).not.toContain("Use tabs.");
  });
});
