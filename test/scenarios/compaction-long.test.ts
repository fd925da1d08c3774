import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { defineProvider, type ModelRequest, type Provider } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { submit } from "../../src/runtime/submit.ts";
import { Conversation } from "../../src/session/conversation.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { problemsOf } from "../context/well-formed.ts";
import { collectGarbage } from "../support/garbage.ts";
import { dataOf } from "../support/stage.ts";
import { processorTime } from "../support/work.ts";
import { asksForSummary, SUMMARY, small } from "./compaction-stage.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
const TURNS = slow ? 2_000 : 400;
const COMPACTIONS = slow ? 20 : 10;
const RESULT_CHARACTERS = 1_000;
/** So that the window fills as often as is wanted. */
const WINDOW = Math.round(((TURNS / COMPACTIONS) * (RESULT_CHARACTERS / 4 + 25)) / 0.75);

/** Reads on and on; every twentieth reply ends the answer. Times between its calls are our own. */
function endlessReader(onRequest: (request: ModelRequest) => void | Promise<void>, turnsOfAnswer = 20): Provider {
  let turns = 0;
  return defineProvider({
    id: "endless",
    async *stream(request) {
      await onRequest(request);
      if (asksForSummary(request)) yield { type: "text", delta: SUMMARY };
      else if (++turns % turnsOfAnswer === 0) yield { type: "text", delta: `answer ${turns}` };
      else {
        const call = { toolCallId: `call-${turns}`, name: "big", arguments: { characters: RESULT_CHARACTERS } };
        yield { type: "call", call };
        yield { type: "end", stop: "tools" };
        return;
      }
      yield { type: "end", stop: "done" };
    },
  });
}

/** The processor time of a turn without collections of garbage: of many, the fast ones. */
const usual = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 5)] ?? 0;

describe("a long session", () => {
  it(`a long session stays valid over ${TURNS} turns with ${COMPACTIONS} compactions, and resumes within a second`, async () => {
    await using folder = await tempFolder();
    const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
    const problems: string[] = [];
    const marks: number[] = [];
    const spent = processorTime();
    const provider = endlessReader((request) => {
      marks.push(spent());
      problems.push(...problemsOf(request.messages));
      if (JSON.stringify(request.messages).length / 4 > WINDOW * 1.1) problems.push("larger than the window");
    });
    const { session } = await small([], { store, provider, window: WINDOW, stamp: systemStamp });
    for (let message = 0; message * 20 < TURNS; message++) {
      await session.sendAndWait({ prompt: `message number ${message};` });
    }
    await session.close();
    expect(problems).toEqual([]);
    const ends = dataOf(session.events, "session.compaction_complete");
    expect(ends.every(({ success }) => success)).toBe(true);
    expect(ends.length).toBeGreaterThanOrEqual(COMPACTIONS);

    const took = marks.slice(1).map((mark, index) => mark - (marks[index] ?? 0));
    const quarter = took.length >> 2;
    const early = usual(took.slice(quarter, quarter * 2));
    const late = usual(took.slice(-quarter));
    expect(late).toBeLessThan(early * 2 + 1);

    const live = new Conversation();
    for (const event of session.events) live.apply(event);
    const resuming = processorTime();
    let shown: ModelRequest | undefined;
    const reader = endlessReader((request) => {
      shown ??= request;
    });
    const again = await small([], { store, provider: reader, window: WINDOW, resume: "session-1", events: [] });
    expect(resuming()).toBeLessThan(1_000);
    await again.session.sendAndWait({ prompt: "still there?" });
    await again.session.close();
    const words = live.entries.map(({ message }) => message.content).join("\n");
    for (let message = 0; message * 20 < TURNS; message++) expect(words).toContain(`message number ${message};`);
    expect(shown?.messages.length).toBe(live.entries.length + 1);
  });

  it("a long session releases the events that a compaction replaced, also during one answer", async () => {
    await using folder = await tempFolder();
    const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
    const results: WeakRef<SessionEvent>[] = [];
    const held: number[] = [];
    const provider = endlessReader(async () => {
      heard.length = 0;
      if (results.length % 50 !== 49) return;
      await collectGarbage();
      held.push(results.filter((result) => result.deref() !== undefined).length);
    }, 200);
    const { session, heard } = await small([], {
      store,
      provider,
      window: 8_000,
      stamp: systemStamp,
      minCondensed: 50,
    });
    session.subscribe((event) => void (event.type === "tool.execution_complete" && results.push(new WeakRef(event))));
    await submit(session, "Read everything.");
    await session.close();
    expect(results).toHaveLength(199);
    expect(Math.max(...held)).toBeLessThan(30);
  });
});
