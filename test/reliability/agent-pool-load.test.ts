import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { type HttpPlay, httpStatus, withFaults } from "../../src/testing/http-reply.ts";
import { type ModelServer, modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { checkTasks } from "../support/task-checker.ts";
import { buildProgram, runProgram } from "./agent-pool-build.ts";
import { agentPoolStore } from "./agent-pool-stage.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
const many = slow ? 500 : 40;
const few = slow ? 100 : 10;
const MEBIBYTE = 1024 * 1024;
let folder: Awaited<ReturnType<typeof tempFolder>>;
let server: ModelServer;
let program: string;

beforeEach(async () => {
  folder = await tempFolder();
  program = join(folder.path, "load.mjs");
  await buildProgram("test/reliability/agent-pool-load-program.ts", program);
  server = await modelServer({ handler: answering(), keepRequests: 10 });
});
afterEach(async () => {
  await server.close();
  await folder[Symbol.asyncDispose]();
});

/** The main agent starts them all at once; each reads a file and answers. Every 20th reply fails, each in its way. */
function answering(): (recorded: { request: ModelRequest | undefined }) => HttpPlay {
  let count = 0;
  return ({ request }) => {
    const messages = request?.messages ?? [];
    const wanted = /\[\[load:(\d+)\]\]/.exec(messages.find(({ role }) => role === "user")?.content ?? "")?.[1];
    const results = messages.filter(({ role }) => role === "tool").length;
    if (wanted !== undefined) {
      return results === 0
        ? calls(...Array.from({ length: Number(wanted) }, (_, at) => taskCall(at)))
        : says("all heard");
    }
    count++;
    if (count % 50 === 0) return httpStatus(429, { headers: { "retry-after": "0" } });
    const reply =
      results === 0 ? calls(["view", { path: "read-me.txt" }, `view-${count}`]) : says("seen it all ".repeat(50));
    if (count % 20 === 0) return faulty(count / 20, reply);
    return withFaults(reply, { delayMs: 100 });
  };
}

function faulty(turn: number, reply: ReturnType<typeof says>): HttpPlay {
  const faults = [{ drop: "headers" }, { cut: 1 }, { drop: 40 }] as const;
  const fault = faults[turn % 4];
  return fault ? withFaults(reply, fault) : httpStatus(503);
}

function taskCall(at: number) {
  const args = {
    description: "look",
    prompt: `look at number ${at}`,
    agent_type: "general-purpose",
    name: `one ${at}`,
  };
  return ["task", args, `task-${at}`] as const;
}

interface Facts {
  readonly answer: string;
  readonly states: Readonly<Record<string, number>>;
  readonly mostAtWork: number;
  readonly wallMs: number;
  readonly busyP99Ms: number;
  readonly peakBytes: number;
}

async function load(count: number): Promise<Facts> {
  const home = join(folder.path, `home-${count}`);
  const work = join(folder.path, `work-${count}`);
  for (const made of [home, work]) mkdirSync(made);
  writeFileSync(join(work, "read-me.txt"), "a line of text\n".repeat(100));
  const ended = await runProgram(program, [server.baseUrl, home, work, String(count)]);
  expect(ended.errors).toBe("");
  const { events } = await agentPoolStore(home).read("one");
  expect(checkTasks(events, { settled: true, maxConcurrency: count })).toEqual([]);
  return JSON.parse(ended.lines[0] ?? "{}") as Facts;
}

describe(`${many} agents at once, with faults and rate limits`, () => {
  it("many agents at once with faults and rate limits end in bounded memory with a free event loop", {
    timeout: 600_000,
  }, async () => {
    const small = await load(few);
    const large = await load(many);
    const perAgent = (large.peakBytes - small.peakBytes) / (many - few) / MEBIBYTE;
    if (slow) console.log(JSON.stringify({ small, large, perAgent }));
    expect(large).toMatchObject({ answer: "all heard", states: { completed: many } });
    expect(large.mostAtWork).toBeGreaterThan(many * 0.9);
    expect(large.peakBytes).toBeLessThanOrEqual(1024 * MEBIBYTE);
    expect(perAgent).toBeLessThanOrEqual(1.5);
    expect(large.busyP99Ms).toBeLessThanOrEqual(250);
  });
});
