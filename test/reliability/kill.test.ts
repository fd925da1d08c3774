import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { says } from "../../src/model/faux/faux-step.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import type { FaultPlan } from "../../src/testing/fault-disk.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf, stage } from "../support/stage.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
/** The short version kills at every third operation. */
const STRIDE = slow ? 1 : 3;
let folder: Awaited<ReturnType<typeof tempFolder>>;
let program: string;
let count = 0;

beforeAll(async () => {
  folder = await tempFolder();
  program = join(folder.path, "actor.mjs");
  await build({
    loader: { ".md": "text" },
    entryPoints: ["test/reliability/actor-program.ts"],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["yaml"],
  });
});
afterAll(() => folder[Symbol.asyncDispose]());

interface Ended {
  readonly acknowledged: readonly string[];
  readonly finished: boolean;
  readonly errors: string;
}

function act(
  root: string,
  mode: "create" | "resume",
  more: { plan?: Omit<FaultPlan, "kill">; rounds?: number; killAfterMs?: number } = {},
): Promise<Ended> {
  mkdirSync(root, { recursive: true });
  const plan = more.plan ? JSON.stringify(more.plan) : "";
  const child = spawn(process.execPath, [program, root, mode, plan, String(more.rounds ?? 1)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { killAfterMs } = more;
  if (killAfterMs !== undefined) child.stdout.once("data", () => setTimeout(() => child.kill("SIGKILL"), killAfterMs));
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => {
      const lines = output.split("\n").slice(0, -1);
      resolve({
        acknowledged: lines.filter((line) => line !== "finished"),
        finished: lines.includes("finished"),
        errors,
      });
    });
  });
}

/** P1, P4, P5, P8 from the outside: only the files, the ledger and what the dead process had said. */
async function check(root: string, acknowledged: readonly string[]): Promise<void> {
  const log = join(root, "session-state", "one", "events.jsonl");
  if (!existsSync(log) || statSync(log).size === 0) {
    expect(acknowledged).toEqual([]);
    return;
  }
  const store = jsonlStore({ root, disk: nodeDisk, stamp: systemStamp });
  const { session, model } = await stage([says("valid")], { store, resume: "one", stamp: systemStamp });
  const ids = new Set(session.events.map(({ id }) => id));
  expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);

  const ledger = existsSync(join(root, "ledger")) ? readFileSync(join(root, "ledger"), "utf8").trim().split("\n") : [];
  expect(new Set(ledger).size).toBe(ledger.length);
  const intents = new Set(dataOf(session.events, "tool.execution_start").map(({ toolCallId }) => toolCallId));
  expect(ledger.filter((token) => !intents.has(token))).toEqual([]);

  expectPaired(session.events);
  expect(await session.sendAndWait({ prompt: "next" })).toEqual({ kind: "done", answer: "valid" });
  const asked = model.requests[0]?.messages ?? [];
  const open = asked.flatMap((message) =>
    message.role === "assistant" ? message.calls.map(({ toolCallId }) => toolCallId) : [],
  );
  const answered = asked.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
  expect([...answered].sort()).toEqual([...open].sort());
  await session.close();
  const after = existsSync(join(root, "ledger")) ? readFileSync(join(root, "ledger"), "utf8").trim().split("\n") : [];
  expect(after).toEqual(ledger);
}

const newRoot = (): string => join(folder.path, `root-${++count}`);

/** Kills at operation 1, 1 + STRIDE, … until a run finishes without the fault firing; two processes at a time. */
async function atEvery(fault: FaultPlan["fault"], operations?: FaultPlan["operations"]): Promise<number> {
  for (let first = 1; ; first += 2 * STRIDE) {
    const ends = await Promise.all(
      [first, first + STRIDE].map(async (at) => {
        const root = newRoot();
        const ended = await act(root, "create", { plan: { at, fault, ...(operations && { operations }) } });
        expect(ended.errors).toBe("");
        await check(root, ended.acknowledged);
        return ended.finished;
      }),
    );
    if (ends.includes(true)) return first;
  }
}

describe("a turn with three tools", () => {
  it("a turn with three tools survives kill -9 before each operation", async () => {
    expect(await atEvery({ kind: "kill", when: "before" })).toBeGreaterThan(10);
  });

  it.each(slow ? [0, 0.25, 0.5, 0.75, 1] : [0.5])(
    "a turn with three tools survives kill -9 with %s of each write done",
    async (share) => {
      expect(await atEvery({ kind: "tear", share, end: "kill" }, ["write"])).toBeGreaterThan(3);
    },
  );

  it.runIf(slow)("a turn with three tools survives kill -9 after each operation", async () => {
    expect(await atEvery({ kind: "kill", when: "after" })).toBeGreaterThan(10);
  });
});

describe("a session under load", () => {
  const kills = slow ? 200 : 4;
  it(`a session under load survives kill -9 ${kills} times and loses nothing acknowledged`, {
    timeout: 600_000,
  }, async () => {
    let seed = Number(process.env.TROUPE_SEED ?? 7);
    const random = (): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed / 2_147_483_648;
    };
    let killedInWork = 0;
    for (let index = 0; index < kills; index += 2) {
      await Promise.all(
        [0, 1].map(async () => {
          const root = newRoot();
          const acknowledged: string[] = [];
          for (const mode of ["create", "resume"] as const) {
            if (mode === "resume" && !existsSync(join(root, "session-state", "one", "events.jsonl"))) break;
            const ended = await act(root, mode, { rounds: 400, killAfterMs: random() * 300 });
            expect(ended.errors).toBe("");
            acknowledged.push(...ended.acknowledged);
            if (!ended.finished && ended.acknowledged.length > 0) killedInWork++;
          }
          await check(root, acknowledged);
        }),
      );
    }
    expect(killedInWork).toBeGreaterThan(kills / 4);
  });
});
