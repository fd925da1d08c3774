/** The number of requests that a model server got, against the rule in docs/how-to/budgets.md, "Every model request". */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { EventData, SessionEvent } from "../../src/protocol/event.ts";
import { submit } from "../../src/runtime/submit.ts";
import { askSideQuestion } from "../../src/session/turn/side-question.ts";
import { type HttpPlay, httpStatus } from "../../src/testing/http-reply.ts";
import { asksForSummary, SUMMARY } from "../scenarios/compaction-stage.ts";
import { input, person, repository, settings, stores } from "./memory-stage.ts";
import { of, onStage, type Stage, starts } from "./stage.ts";

/** The model calls in the log on disk, as a program without troupe would read them. */
function callsInLog({ home, session }: Stage): EventData<"troupe.usage">[] {
  const log = readFileSync(join(home, "session-state", session.id, "events.jsonl"), "utf8");
  const events = log.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as SessionEvent]));
  return events.flatMap((event) => (event.type === "troupe.usage" ? [event.data] : []));
}

const requestsInLog = (stage: Stage): number => callsInLog(stage).reduce((sum, { attempts }) => sum + attempts, 0);
const named = (stage: Stage): string[] => callsInLog(stage).map(({ turnId, attempts }) => `${turnId}: ${attempts}`);
const summaries = (...steps: readonly HttpPlay[]) => forAgent<HttpPlay>(asksForSummary, ...steps);
const isMerge = ({ tools }: { tools: readonly unknown[] }): boolean => tools.length === 0;

describe("LOOP-33: no hidden calls", () => {
  it("LOOP-33 the attempts in the log add up to the requests of a run with a retry, an agent, a compaction and a memory merge", async () => {
    const merged = JSON.stringify({ ...input, fact: "Run the tests with npm test." });
    const steps = [
      forAgent<HttpPlay>(isMerge, httpStatus(500), says(merged)),
      of("helper", httpStatus(503), says("helped")),
      summaries(httpStatus(502), says(SUMMARY)),
      httpStatus(500),
      stores({ fact: "Tests run with npm test." }),
      stores({ fact: "Run the tests by npm test." }),
      starts("helper", "explore", { mode: "sync" }),
      says("done"),
      says("beside"),
      says("after the summary"),
    ];
    const options = {
      context: { memory: { enabled: true } },
      permissions: {},
      files: { ...repository(), ...settings({ store: "repository-file", merge: true }) },
    };
    await onStage(steps, options, async (stage) => {
      const { session, requests } = stage;
      person(session);
      expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "done", answer: "done" });
      expect(await askSideQuestion(session, "And?", AbortSignal.timeout(60_000))).toBe("beside");
      await submit(session, "/compact");
      await session.sendAndWait({ prompt: "on" });
      await session.close();
      expect(requests()).toHaveLength(13);
      expect(requestsInLog(stage)).toBe(13);
      expect(named(stage).toSorted()).toEqual(
        ["0: 2", "1: 1", "2: 1", "0: 2", "3: 1", "aside: 1", "compaction: 2", "0: 1", "memory: 2"].toSorted(),
      );
    });
  });

  it("LOOP-33 a summary, a side question and a turn that fail without text are requests in the log", async () => {
    const steps = [says("hello"), summaries(httpStatus(401)), httpStatus(401), httpStatus(401)];
    await onStage(steps, {}, async (stage) => {
      const { session, requests } = stage;
      await session.sendAndWait({ prompt: "go" });
      await expect(submit(session, "/compact")).rejects.toThrow("401");
      await expect(askSideQuestion(session, "And?", AbortSignal.timeout(60_000))).rejects.toThrow();
      expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "error" });
      await session.close();
      expect(named(stage)).toEqual(["0: 1", "compaction: 1", "aside: 1", "0: 1"]);
      expect(requestsInLog(stage)).toBe(requests().length);
    });
  });

  it("LOOP-33 a request that is repeated without a refused parameter counts twice", async () => {
    const body = JSON.stringify({ error: { message: "Unknown parameter: 'stream_options'", param: "stream_options" } });
    const steps = [httpStatus(400, { body }), calls(["view", { path: "nothing" }]), says("done")];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      expect(stage.requests()).toHaveLength(3);
      expect(named(stage)).toEqual(["0: 2", "1: 1"]);
    });
  });

  it("LOOP-33 a retry that is given up during its pause was not sent and does not count", async () => {
    const steps = [httpStatus(429, { headers: { "retry-after": "100" } })];
    await onStage(steps, {}, async (stage) => {
      const { session, heard, requests } = stage;
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => heard.some(({ type }) => type === "troupe.retry")).toBe(true);
      session.abort();
      expect(await sent).toEqual({ kind: "aborted" });
      expect(requests()).toHaveLength(1);
      expect(named(stage)).toEqual(["0: 1"]);
    });
  });
});

it("LOOP-02 the number of turns is the number of requests where nothing is retried", async () => {
  const steps = [calls(["view", { path: "a" }]), starts("helper", "explore", { mode: "sync" }), says("done")];
  await onStage([...steps, of("helper", says("helped"))], {}, async (stage) => {
    await stage.session.sendAndWait({ prompt: "go" });
    const turns = stage.session.events.filter(({ type }) => type === "assistant.turn_start");
    expect(turns).toHaveLength(stage.requests().length);
    expect(requestsInLog(stage)).toBe(turns.length);
  });
});
