import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { forAgent, otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { HttpPlay } from "../../src/testing/http-reply.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { checkSidekicks } from "../support/sidekick-checker.ts";
import { buildProgram, runProgram } from "./agent-pool-build.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let program: string;

beforeEach(async () => {
  folder = await tempFolder();
  program = join(folder.path, "sidekick.mjs");
  await buildProgram("test/reliability/sidekick-program.ts", program);
});
afterEach(() => folder[Symbol.asyncDispose]());

const scout = {
  ...{ name: "scout", description: "d", prompt: "You are @@scout." },
  sidekick: { triggers: ["user.message"] },
};

/** The main agent looks around until it hears of what the sidekick found; the sidekick sends at once. */
const script = [
  forAgent<HttpPlay>(
    ({ system }) => system.includes("@@scout"),
    calls(["send_inbox", { summary: "found", content: "all of it" }]),
    ...Array.from({ length: 9 }, () => says("nothing new")),
  ),
  otherwise<HttpPlay>((request) =>
    heardOf(request) || request.messages.length > 60 ? says("done") : calls(["glob", { pattern: "*" }]),
  ),
];
const heardOf = ({ messages }: ModelRequest): boolean =>
  messages.some(({ content }) => content.includes('Inbox entry "inbox-1"'));

interface Story {
  readonly before: readonly SessionEvent[];
  readonly after: readonly SessionEvent[];
  readonly read: string;
}

async function killedAt(point: readonly [event: string, agent: string]): Promise<Story> {
  const root = join(folder.path, point.join("-").replace("#", "_"));
  const [home, cwd] = [join(root, "home"), join(root, "work")];
  mkdirSync(home, { recursive: true });
  mkdirSync(cwd, { recursive: true });
  await using server = await modelServer({ steps: script, models: ["large"] });
  const models = { large: { contextWindow: 200_000, price: { input: 1, output: 5 } } };
  const alpha = { type: "openai", baseUrl: server.baseUrl, auth: "none", models };
  writeFileSync(join(home, "providers.json"), JSON.stringify({ providers: { alpha } }));
  const { errors } = await runProgram(program, [home, cwd, JSON.stringify(scout), ...point]);
  expect(errors).toBe("");
  const runtime = createRuntime({ environment: { PATH: process.env.PATH, HOME: home, TROUPE_SANDBOX: "off" }, home });
  const before = (await runtime.store.read("one")).events;
  const session = await runtime.resumeSession("one", {
    cwd,
    model: { name: "alpha/large" },
    workspace: { agents: [scout] },
  });
  try {
    await session.sendAndWait({ prompt: "go on" });
    const inbox = session.events.filter(({ type }) => type === "troupe.inbox_entry");
    const [entry] = inbox;
    const read = entry?.type === "troupe.inbox_entry" ? entry.data.content : "";
    await session.close();
    return { before, after: session.events, read };
  } finally {
    await session.close();
    await runtime.close();
  }
}

const count = (events: readonly SessionEvent[], type: string): number =>
  events.filter((event) => event.type === type).length;

describe("a sidekick that is killed", () => {
  it("MEM-50 a killed sidekick's entry is delivered once, whenever the kill happens", async () => {
    const points = [
      ["troupe.sidekick_triggered", "scout#1"],
      ["troupe.inbox_entry", "scout#1"],
      ["tool.execution_complete", "scout#1"],
      ["system.notification", "main"],
      ["troupe.sidekick_ended", "scout#1"],
    ] as const;
    const stories = await Promise.all(points.map((point) => killedAt(point)));
    const seen = stories.map(({ before, after }, index) => ({
      killedAt: points[index]?.[0],
      // Read while the dead process held it, a log has everything that was told.
      sentBefore: count(before, "troupe.inbox_entry") > 0,
      toldInAll: count(after, "system.notification"),
      problems: checkSidekicks(after),
    }));
    const fine = { problems: [], toldInAll: 1 };
    expect(seen).toEqual([
      { ...fine, killedAt: "troupe.sidekick_triggered", sentBefore: false },
      { ...fine, killedAt: "troupe.inbox_entry", sentBefore: true },
      { ...fine, killedAt: "tool.execution_complete", sentBefore: true },
      { ...fine, killedAt: "system.notification", sentBefore: true },
      { ...fine, killedAt: "troupe.sidekick_ended", sentBefore: true },
    ]);
    for (const { after, read } of stories) {
      expectPaired(after);
      expect(read).toBe("all of it");
    }
  });
});
