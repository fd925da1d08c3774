import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Session } from "../../src/session/session.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, type Stage, starts, texts } from "./stage.ts";

const pointOf = async (session: Session, words: string): Promise<string> => {
  const found = (await session.record.rewinds.points()).find(({ userMessage }) => userMessage === words);
  if (!found) throw new Error(`no message "${words}"`);
  return found.eventId;
};
const ask = (session: Session, ...prompts: readonly string[]) =>
  prompts.reduce(async (before: Promise<unknown>, prompt) => {
    await before;
    await session.sendAndWait({ prompt });
  }, Promise.resolve());
const linesOf = ({ home, session }: Stage): string[] =>
  readFileSync(join(home, "session-state", session.id, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
const idsOf = (events: readonly SessionEvent[]): string[] => events.map(({ id }) => id);

describe("rewind", () => {
  it("LOOP-32 rewind truncates before the chosen message, replays the rest, and continues from there", async () => {
    const steps = [says("one"), says("two"), says("three"), says("another two"), says("after")];
    await onStage(steps, {}, async (stage) => {
      const { session, heard, requests, runtime } = stage;
      await ask(session, "first", "second", "third");
      const before = session.events;
      const cost = session.record.budget.session;
      const target = await pointOf(session, "second");
      const place = before.findIndex(({ id }) => id === target);
      const eventsRemoved = before.length - place;
      expect(await session.record.rewinds.rewind(target)).toEqual({
        ...{ outcome: "success", eventsRemoved, restoredFiles: [], skippedFiles: [] },
      });

      expect(idsOf(session.events.slice(0, -1))).toEqual(idsOf(before.slice(0, place)));
      expect(session.events.at(-1)).toMatchObject({ type: "troupe.rewound", parentId: before[place - 1]?.id });
      const told = heard.filter(({ type }) => type === "session.snapshot_rewind");
      expect(told).toMatchObject([{ ephemeral: true, data: { upToEventId: target, eventsRemoved } }]);
      expect(session.record.budget.session).toEqual(cost);

      await ask(session, "instead");
      const last = requests().at(-1);
      expect(last && texts(last)).toEqual(["first", "one", "instead"]);
      expect(idsOf((await runtime.store.read(session.id)).events)).toEqual(idsOf(session.events));

      const again = await stage.reopen();
      expect(again.record.budget.session).toEqual({ ...session.record.budget.session });
      await ask(again, "and now?");
      const resumed = requests().at(-1);
      expect(resumed && texts(resumed)).toEqual(["first", "one", "instead", "another two", "and now?"]);
      expectPaired(again.events);
    });
  });

  it("LOOP-32 rewind loses nothing: removed events stay in the log, and can be restored", async () => {
    const steps = [says("one"), says("two"), says("other"), says("three")];
    await onStage(steps, {}, async (stage) => {
      const { session, requests } = stage;
      await ask(session, "first", "second");
      const whole = idsOf(session.events);
      await session.record.rewinds.rewind(await pointOf(session, "second"));
      await ask(session, "other");
      const written = linesOf(stage).map((line) => (JSON.parse(line) as SessionEvent).id);
      expect(whole.filter((id) => !written.includes(id))).toEqual([]);
      expect(await session.record.rewinds.past()).toMatchObject([{ userMessage: "second", hadFiles: false }]);

      expect(await session.record.rewinds.restore()).toMatchObject({ outcome: "success" });
      expect(idsOf(session.events).slice(0, -1)).toEqual(whole);
      await ask(session, "third");
      const last = requests().at(-1);
      expect(last && texts(last)).toEqual(["first", "one", "second", "two", "third"]);

      // The restoring itself can be taken back: the other branch is there too.
      const again = await stage.reopen();
      const [restoring] = await again.record.rewinds.past();
      await again.record.rewinds.restore({ rewindId: restoring?.rewindId ?? "" });
      expect((await again.record.rewinds.points()).map(({ userMessage }) => userMessage)).toEqual(["first", "other"]);
    });
  });

  it("LOOP-32 rewind restores files, keeps files that the user changed since, and can be undone for both", async () => {
    const creates = (path: string, text: string) => ["create", { path, file_text: text }] as const;
    const edits = (path: string, to: string) => ["edit", { path, old_str: "one", new_str: to }] as const;
    const steps = [
      calls(creates("kept.txt", "one\n")),
      says("made"),
      calls(edits("kept.txt", "two"), creates("new/made.txt", "x\ny\n"), creates("theirs.txt", "mine")),
      says("changed"),
      calls(["bash", { command: "rm kept.txt" }]),
      says("removed"),
    ];
    await onStage(steps, {}, async ({ session, folder }) => {
      await ask(session, "make", "change", "remove");
      const at = (path: string): string => join(folder, path);
      writeFileSync(at("theirs.txt"), "a person's");
      const points = await session.record.rewinds.points();
      expect(
        points.map(({ userMessage, fileCount, canRestoreFiles, turnChangedFiles, linesAdded, linesRemoved }) => [
          ...[userMessage, fileCount, canRestoreFiles, turnChangedFiles, linesAdded, linesRemoved],
        ]),
      ).toEqual([
        ["make", 3, true, true, 1, 0],
        ["change", 3, true, true, 3, 1],
        ["remove", 1, true, true, 0, 1],
      ]);
      const target = await pointOf(session, "change");
      const preview = await session.record.rewinds.preview(target);
      expect(preview.files.map(({ path, changeType }) => [path.slice(folder.length + 1), changeType]).sort()).toEqual([
        ["kept.txt", "deleted"],
        ["new/made.txt", "created"],
      ]);
      expect(preview.skipped).toEqual([at("theirs.txt")]);
      expect(existsSync(at("kept.txt"))).toBe(false);

      const rewound = await session.record.rewinds.rewind(target, { files: true });
      expect(rewound).toMatchObject({
        outcome: "success",
        skippedFiles: [{ path: at("theirs.txt"), reason: "user-modified" }],
      });
      expect([...rewound.restoredFiles].sort()).toEqual([at("kept.txt"), at("new/made.txt")]);
      expect(readFileSync(at("kept.txt"), "utf8")).toBe("one\n");
      expect(existsSync(at("new"))).toBe(false);
      expect(readFileSync(at("theirs.txt"), "utf8")).toBe("a person's");

      expect(await session.record.rewinds.restore({ files: true })).toMatchObject({
        outcome: "success",
        skippedFiles: [],
      });
      expect(existsSync(at("kept.txt"))).toBe(false);
      expect(readFileSync(at("new/made.txt"), "utf8")).toBe("x\ny\n");
      expect((await session.record.rewinds.points()).map(({ userMessage }) => userMessage)).toEqual([
        "make",
        "change",
        "remove",
      ]);
    });
  });

  it("LOOP-32 rewind reverts agents, modes and schedules too, and answers nothing twice", async () => {
    const steps = [
      says("hello"),
      starts("helper", "explore", { mode: "sync" }),
      of("helper", says("found it")),
      says("the helper found it"),
      says("queued answer"),
      says("fresh"),
    ];
    await onStage(steps, {}, async (stage) => {
      const { session, requests } = stage;
      await ask(session, "hi");
      const schedules = session.workspace.services?.schedules?.();
      const later = { prompt: "look", displayPrompt: "look", intervalMs: 3_600_000 };
      await schedules?.add({ ...later, recurring: true });
      await schedules?.add({ ...later, recurring: false });
      const working = session.sendAndWait({ prompt: "delegate" });
      const queued = session.sendAndWait({ prompt: "and this" });
      await Promise.all([working, queued]);
      await session.mainAgent.modes.set("autopilot");
      await schedules?.stop(2);
      await schedules?.add({ ...later, recurring: true });
      expect(session.agents.tasks?.list()).toHaveLength(1);

      await session.record.rewinds.rewind(await pointOf(session, "delegate"));
      expect(session.agents.tasks?.list()).toEqual([]);
      expect(session.mainAgent.modes.current).toBe("interactive");
      // What ended meanwhile stays ended, what was made meanwhile is gone.
      expect(schedules?.list().map(({ id }) => id)).toEqual([1]);
      const asked = requests().length;
      const again = await stage.reopen();
      await again.queue.whenIdle();
      expect(requests()).toHaveLength(asked);
      expect(
        again.workspace.services
          ?.schedules?.()
          ?.list()
          .map(({ id }) => id),
      ).toEqual([1]);
      await ask(again, "go on");
      const last = requests().at(-1);
      expect(last && texts(last)).toEqual(["hi", "hello", "go on"]);
    });
  });

  it("LOOP-32 rewind is refused during an answer, for an unknown event, and before the beginning", async () => {
    const gate = deferred<void>();
    await onStage([says("one"), stalls(gate.promise, says("two"))], {}, async ({ session, heard }) => {
      await ask(session, "first");
      const target = await pointOf(session, "first");
      const busy = session.sendAndWait({ prompt: "second" });
      await expect.poll(() => heard.filter(({ type }) => type === "assistant.turn_start").length).toBe(2);
      expect(await session.record.rewinds.rewind(target)).toMatchObject({ outcome: "session-busy" });
      gate.resolve();
      expect(await busy).toMatchObject({ kind: "done", answer: "two" });
      await expect(session.record.rewinds.rewind("nowhere")).rejects.toThrow("Event nowhere not found");
      await expect(session.record.rewinds.rewind(session.events[0]?.id ?? "")).rejects.toThrow("before its beginning");
      expect(dataOf(session.events, "troupe.rewound")).toEqual([]);
    });
  });

  it("rewind into a turn leaves a valid history: the call that was cut off has a result", async () => {
    const steps = [calls(["view", { path: "a.txt" }]), says("seen"), says("again")];
    await onStage(steps, { files: { "a.txt": "alpha" } }, async ({ session, requests }) => {
      await ask(session, "look");
      const end = session.events.find(({ type }) => type === "tool.execution_complete");
      await session.record.rewinds.rewind(end?.id ?? "");
      expectPaired(session.events);
      await ask(session, "once more");
      const roles = requests()
        .at(-1)
        ?.messages.map(({ role, content }) => [role, content.slice(0, 11)]);
      expect(roles).toEqual([
        ["user", "look"],
        ["assistant", ""],
        ["tool", "The executi"],
        ["user", "once more"],
      ]);
    });
  });
});
