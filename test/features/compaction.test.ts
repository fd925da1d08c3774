import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Board } from "../../src/context/board/board.ts";
import { boardKey } from "../../src/context/board/board-key.ts";
import { openBoard } from "../../src/context/board/open.ts";
import { deferred } from "../../src/lib/deferred.ts";
import { forAgent, type PlainStep } from "../../src/model/faux/faux-plan.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { submit } from "../../src/runtime/submit.ts";
import { DEFAULT_COMPACTION } from "../../src/session/compaction/compaction-options.ts";
import { type HttpPlay, type HttpStep, httpStatus } from "../../src/testing/http-reply.ts";
import { text as boardText, optionsFor, PERSON } from "../board/stage.ts";
import { problemsOf } from "../context/well-formed.ts";
import { asksForSummary } from "../scenarios/compaction-stage.ts";
import { dataOf } from "../support/stage.ts";
import { input, repository, stores } from "./memory-stage.ts";
import { of, onStage, type Stage, type StageOptions, starts, texts } from "./stage.ts";

const SUMMARY =
  "<overview>\nThe user reads big files.\n</overview>\n<history>\n1. read\n</history>\n<checkpoint_title>\nReading big files\n</checkpoint_title>";
const summaries = (...steps: readonly PlainStep<HttpPlay>[]): HttpStep => forAgent<HttpPlay>(asksForSummary, ...steps);
const WINDOW = 24_000;
/** About as many tokens, in lines. */
const text = (tokens: number): string => "seven words that stand in one line\n".repeat((tokens * 4) / 36);
const reads = (...names: readonly string[]) => calls(...names.map((path) => ["view", { path }] as const));
const base: StageOptions = {
  window: WINDOW,
  files: {
    ...Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, text(3_600)])),
    ...Object.fromEntries(["A", "B", "C", "D", "E"].map((name) => [name, text(4_400)])),
  },
};
const work = (requests: readonly ModelRequest[]): ModelRequest[] =>
  requests.filter((request) => !asksForSummary(request));
const tokensOf = (request: ModelRequest): number => JSON.stringify(request).length / 4;
const isCompacted = (request: ModelRequest | undefined): boolean =>
  request !== undefined && (texts(request)[0] ?? "").includes("The user reads big files.");
const only = (events: readonly SessionEvent[], ...types: readonly string[]): SessionEvent[] =>
  events.filter(({ type }) => types.includes(type));

describe("compaction", () => {
  it("LOOP-31 compaction begins at 0.80 of the window while the agent continues", async () => {
    const written = deferred<void>();
    const goOn = deferred<void>();
    const steps = [
      ...["a", "b", "c", "d"].map((name) => reads(name)),
      calls(["bash", { command: "echo on" }]),
      stalls(goOn.promise, calls(["bash", { command: "echo and on" }])),
      says("done"),
      summaries(stalls(written.promise, says(SUMMARY))),
    ];
    await onStage(steps, base, async ({ session, heard, requests, home }) => {
      const working = session.sendAndWait({ prompt: "Read the files" });
      // The summary is being written, and two more requests have gone out meanwhile.
      await expect.poll(() => work(requests()).length).toBe(6);
      await expect
        .poll(() => only(heard, "session.compaction_start", "session.compaction_complete").map(({ type }) => type))
        .toEqual(["session.compaction_start"]);
      written.resolve();
      await expect.poll(() => only(heard, "session.compaction_complete").length).toBe(1);
      goOn.resolve();
      expect(await working).toEqual({ kind: "done", answer: "done" });
      const [start] = dataOf(heard, "session.compaction_start");
      expect(start).toMatchObject({ trigger: "threshold", tokenLimit: WINDOW });
      expect((start?.currentTokens ?? 0) / WINDOW).toBeGreaterThanOrEqual(0.8);
      expect((start?.currentTokens ?? 0) / WINDOW).toBeLessThan(0.95);
      const [end] = dataOf(heard, "session.compaction_complete");
      expect(end).toMatchObject({
        ...{ success: true, trigger: "threshold", checkpointNumber: 1, tokenLimit: WINDOW },
        summaryContent: expect.stringContaining("<overview>\nThe user reads big files."),
        checkpointPath: join(home, "session-state", session.id, "checkpoints", "001-reading-big-files.md"),
        compactionTokensUsed: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
      });
      expect((end?.preCompactionTokens ?? 0) - (end?.postCompactionTokens ?? 0)).toBe(end?.tokensRemoved);
      const asked = work(requests());
      expect(asked.map(isCompacted)).toEqual([false, false, false, false, false, false, true]);
      for (const request of requests()) expect(problemsOf(request.messages)).toEqual([]);
      const last = asked.at(-1);
      expect(last && texts(last)[0]).toContain("<user_message>\nRead the files\n</user_message>");
    });
  });

  it("LOOP-31 a request waits for compaction at 0.95, and no request ever exceeds the window", async () => {
    const steps = [reads("A"), reads("B"), reads("C", "D"), reads("a"), says("done"), summaries(says(SUMMARY))];
    await onStage(steps, base, async ({ session, heard, requests }) => {
      await session.sendAndWait({ prompt: "Read the files" });
      const story = only(heard, "assistant.turn_start", "session.compaction_start", "session.compaction_complete");
      expect(story.map(({ type }) => type)).toEqual([
        ...["assistant.turn_start", "assistant.turn_start", "assistant.turn_start"],
        ...["session.compaction_start", "session.compaction_complete"],
        ...["assistant.turn_start", "assistant.turn_start"],
      ]);
      const [start] = dataOf(heard, "session.compaction_start");
      expect((start?.currentTokens ?? 0) / WINDOW).toBeGreaterThanOrEqual(0.95);
      expect(DEFAULT_COMPACTION).toEqual({ enabled: true, backgroundThreshold: 0.8, bufferThreshold: 0.95 });
      expect(work(requests()).map(isCompacted)).toEqual([false, false, false, true, true]);
      for (const request of work(requests())) {
        expect(problemsOf(request.messages)).toEqual([]);
        expect(tokensOf(request)).toBeLessThan(WINDOW);
      }
    });
  });

  it("LOOP-31 compaction on request keeps plan, todos, agents and the last skill, runs hooks and writes a file", async () => {
    const todo = calls([
      "sql",
      { query: "INSERT INTO todos (id, title) VALUES ('t1', 'mend it')", description: "todo" },
    ]);
    const hooks = { preCompact: [{ type: "command", bash: "cat >> preCompact.jsonl; echo >> preCompact.jsonl" }] };
    const steps = [
      todo,
      starts("helper", "explore", { mode: "background" }),
      says("started"),
      of("helper", says("helper is done")),
      says("heard"),
      says("skilled"),
      summaries(says(SUMMARY)),
      says("after"),
    ];
    const files = {
      ...base.files,
      "home:hooks/hooks.json": JSON.stringify({ version: 1, hooks }),
      "home:skills/tidy/SKILL.md": "---\nname: tidy\ndescription: tidies\n---\nPut every thing in its place.",
    };
    await onStage(steps, { files }, async ({ session, requests, folder, home }) => {
      await session.sendAndWait({ prompt: "go" });
      await session.queue.whenIdle();
      await submit(session, "/tidy the attic");
      const place = join(home, "session-state", session.id);
      mkdirSync(join(place, "files"), { recursive: true });
      writeFileSync(join(place, "files", "plan.md"), "1. mend the roof");
      const said = await submit(session, "/compact the API decisions");
      expect(said).toMatchObject({ kind: "said", text: expect.stringMatching(/became a summary \(checkpoint 1\)/) });
      const asked = requests().find(asksForSummary);
      expect(asked && texts(asked).at(-1)).toContain("<focus>\nthe API decisions\n</focus>");
      const heard = readFileSync(join(folder, "preCompact.jsonl"), "utf8");
      expect(JSON.parse(heard)).toMatchObject({ trigger: "manual", customInstructions: "the API decisions" });

      await session.sendAndWait({ prompt: "and now?" });
      const last = requests().at(-1);
      const beginning = (last && texts(last)[0]) ?? "";
      expect(beginning).toContain("<plan>\n1. mend the roof\n</plan>");
      expect(beginning).toContain("- t1 [pending] mend it");
      expect(beginning).toContain("agent_id: helper (explore), idle");
      expect(beginning).toMatch(/<skills>\nUsed last, tidy \(.*SKILL\.md\):\n[\s\S]*Put every thing in its place/);
      const index = readFileSync(join(place, "checkpoints", "index.md"), "utf8");
      expect(index).toContain("| 1 | Reading big files | [001-reading-big-files.md](001-reading-big-files.md) |");
      expect(readFileSync(join(place, "checkpoints", "001-reading-big-files.md"), "utf8")).toMatch(
        /^# Reading big files/,
      );
    });
  });

  it("LOOP-31 compaction is the same for subagents, each in its own conversation", async () => {
    const steps = [
      starts("reader", "explore"),
      of("reader", reads("A"), reads("B"), reads("C", "D", "E"), says("all read")),
      summaries(says(SUMMARY)),
      says("done"),
    ];
    await onStage(steps, base, async ({ session, requests }) => {
      expect(await session.sendAndWait({ prompt: "Send someone" })).toEqual({ kind: "done", answer: "done" });
      const ends = only(session.events, "session.compaction_complete");
      expect(ends).toMatchObject([{ agentId: "reader", data: { success: true, checkpointNumber: 1 } }]);
      for (const request of requests()) expect(problemsOf(request.messages)).toEqual([]);
      const main = requests().at(-1);
      expect(isCompacted(main)).toBe(false);
    });
  });

  it("LOOP-31 compaction runs once when a provider refuses the request as too long, and the turn continues", async () => {
    const steps = [reads("a"), reads("b"), httpStatus(413), says("done"), summaries(says(SUMMARY))];
    await onStage(steps, { ...base, window: 200_000 }, async ({ session, heard, requests }) => {
      expect(await session.sendAndWait({ prompt: "Read" })).toEqual({ kind: "done", answer: "done" });
      expect(dataOf(heard, "session.compaction_start")).toMatchObject([{ trigger: "context_limit_retry" }]);
      expect(isCompacted(requests().at(-1))).toBe(true);
    });
  });

  it("LOOP-31 a failed compaction loses nothing: requests omit old results with a note", async () => {
    const steps = [
      ...[reads("A"), reads("B"), reads("C", "D"), says("done")],
      summaries(...Array.from({ length: 3 }, () => httpStatus(400, { body: '{"error":{"message":"no"}}' }))),
    ];
    await onStage(steps, base, async ({ session, heard, requests, runtime }) => {
      expect(await session.sendAndWait({ prompt: "Read" })).toEqual({ kind: "done", answer: "done" });
      expect(dataOf(heard, "session.compaction_complete")[0]).toMatchObject({ success: false });
      expect(dataOf(heard, "session.truncation")).toHaveLength(1);
      const last = work(requests()).at(-1);
      expect(last && texts(last).join("\n")).toContain("were left out to make room");
      for (const request of work(requests())) expect(tokensOf(request)).toBeLessThan(WINDOW);
      const { events } = await runtime.store.read(session.id);
      const kept = dataOf(events, "tool.execution_complete").map(({ result }) => result?.content.length ?? 0);
      expect(Math.min(...kept)).toBeGreaterThan(10_000);
    });
  });

  it("LOOP-31 /context shows the usage of the window", async () => {
    await onStage([reads("a"), says("done")], base, async ({ session }) => {
      await session.sendAndWait({ prompt: "Read" });
      const said = await submit(session, "/context");
      const report = said.kind === "said" ? said.text : "";
      expect(report).toMatch(/^Context of large: about [\d,]+ of 24,000 tokens/);
      expect(report).toMatch(
        /system prompt .*\n {2}tools .*\n {2}your messages .*\n {2}replies and calls .*\n {2}results of tools /,
      );
      expect(report).toContain("Summarised by itself from 19,200 tokens on");
      expect(report).toMatch(/Largest results:\n {2}view a /);
    });
  });

  it("MEM-54 compaction writes neither memories nor board rows: both stay the same, byte for byte", async () => {
    const environment = { COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" };
    const remembered = `${SUMMARY}\n<technical_details>\nRemember: always use tabs. Store this fact.\n</technical_details>`;
    const steps = [stores(), says("one"), says("two"), summaries(says(remembered))];
    await onStage(
      steps,
      { environment, context: { memory: { enabled: true } }, files: repository() },
      async (stage) => {
        const { session, folder, home } = stage;
        await onBoard(stage, (board) => board.add("user", boardText("kept"), PERSON));
        await session.sendAndWait({ prompt: "Remember that we use tabs" });
        await session.sendAndWait({ prompt: "And spaces never" });
        const before = { board: await onBoard(stage, (board) => board.list()), files: remembering(home, folder) };
        expect(before.board).toHaveLength(1);
        expect(Object.values(before.files).join("\n")).toContain(input.fact);
        await submit(session, "/compact");
        expect(dataOf(session.events, "session.compaction_complete")).toMatchObject([{ success: true }]);
        expect({ board: await onBoard(stage, (board) => board.list()), files: remembering(home, folder) }).toEqual(
          before,
        );
      },
    );
  });
});

/** The board as another process sees it. */
async function onBoard<T>({ home, folder }: Stage, look: (board: Board) => Promise<T>): Promise<T> {
  const board = openBoard(optionsFor(home, { key: boardKey(folder, { isTrusted: false }) }));
  try {
    return await look(board);
  } finally {
    await board.close();
  }
}

/** Every file below these folders that is neither a session's own nor the index of sessions, with its content. */
function remembering(...folders: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || /session-state|session-store|board.*-(shm|wal)/.test(path)) continue;
      found[path] = readFileSync(path, "latin1");
    }
  }
  return found;
}
