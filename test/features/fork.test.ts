import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { submit } from "../../src/runtime/submit.ts";
import { expectPaired } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { onStage, type Stage, texts } from "./stage.ts";

const SUMMARY = "<overview>\nA file was made.\n</overview>\n<checkpoint_title>\nMaking\n</checkpoint_title>";
const makes = calls(["create", { path: "a.txt", file_text: "one" }]);
const writesTodo = calls([
  "sql",
  { query: "INSERT INTO todos (id, title) VALUES ('t1', 'test it')", description: "todo" },
]);

const folderOf = ({ home }: Stage, sessionId: string): string => join(home, "session-state", sessionId);
const infos = (events: readonly SessionEvent[]): string[] =>
  dataOf(events, "session.info").flatMap(({ infoType, message }) => (infoType === "fork" ? [message] : []));

describe("fork", () => {
  it("LOOP-32 a fork has the conversation, plan, checkpoints and todos of the first session and its own id", async () => {
    const steps = [makes, writesTodo, says("made"), says(SUMMARY), says("second answer"), says("in the fork")];
    await onStage(steps, {}, async (stage) => {
      const { session, runtime, requests } = stage;
      await session.sendAndWait({ prompt: "make it" });
      await submit(session, "/compact");
      await session.sendAndWait({ prompt: "go on" });
      mkdirSync(join(folderOf(stage, session.id), "files"), { recursive: true });
      writeFileSync(join(folderOf(stage, session.id), "files", "plan.md"), "# The plan");
      const before = [...session.events];

      const fork = await runtime.forkSession({ sessionId: session.id, session });
      expect(fork).toEqual({ sessionId: expect.not.stringContaining(session.id), name: "make it (fork)" });
      expect(infos(session.events)).toEqual([`Forked this session into "make it (fork)" (${fork.sessionId}).`]);
      expect(session.events.slice(0, before.length)).toEqual(before);

      const { events, damage } = await runtime.store.read(fork.sessionId);
      expect(damage).toEqual([]);
      expect(infos(events)).toEqual([`Forked from "make it" (${session.id}).`]);
      expect(events[0]).toMatchObject({ type: "session.start", parentId: null, data: { sessionId: fork.sessionId } });
      expect(events.slice(1).map(({ parentId }) => parentId)).toEqual(events.slice(0, -1).map(({ id }) => id));
      const folder = folderOf(stage, fork.sessionId);
      expect(readFileSync(join(folder, "files", "plan.md"), "utf8")).toBe("# The plan");
      expect(dataOf(events, "session.compaction_complete").map(({ checkpointPath }) => checkpointPath)).toEqual([
        join(folder, "checkpoints", "001-making.md"),
      ]);
      expect(existsSync(join(folder, "checkpoints", "001-making.md"))).toBe(true);
      expect(readFileSync(join(folder, "checkpoints", "index.md"), "utf8")).toContain("| 1 | Making | [001-making.md]");
      expect(readFileSync(join(folder, "events.jsonl"), "utf8")).not.toContain(folderOf(stage, session.id));

      const second = await runtime.resumeSession(fork.sessionId, { cwd: stage.folder, model: { name: "alpha/large" } });
      await second.sendAndWait({ prompt: "and here?" });
      expect(await second.workspace.services?.readTodos()).toMatchObject([{ id: "t1" }]);
      const last = requests().at(-1);
      expect(last && texts(last).slice(1)).toEqual(["go on", "second answer", "and here?"]);
      // What the first session did to files can be taken back in the fork too.
      const [first] = await second.record.rewinds.points();
      expect(first).toMatchObject({ userMessage: "make it", fileCount: 1 });
      expectPaired(second.events);
      await second.close();
      expect((await runtime.store.read(session.id)).events).toHaveLength(before.length + 1);
    });
  });

  it("LOOP-32 a fork ends before the given message, even while the agent works, and repeats no queued message", async () => {
    const gate = deferred<void>();
    const steps = [says("one"), stalls(gate.promise, says("two")), says("three"), says("fresh")];
    await onStage(steps, {}, async (stage) => {
      const { session, runtime, requests, heard } = stage;
      await session.sendAndWait({ prompt: "first" });
      await session.workspace.services
        ?.schedules?.()
        ?.add({ prompt: "later", displayPrompt: "later", intervalMs: 3_600_000, recurring: true });
      const working = session.sendAndWait({ prompt: "second" });
      await expect.poll(() => heard.filter(({ type }) => type === "assistant.turn_start").length).toBe(2);
      const queued = session.sendAndWait({ prompt: "third" });
      await expect.poll(() => heard.some(({ type }) => type === "troupe.message_queued")).toBe(true);

      const whole = await runtime.forkSession({ sessionId: session.id, session, name: "whole" });
      const [, second] = await session.record.rewinds.points();
      const part = await runtime.forkSession({ sessionId: session.id, session, toEventId: second?.eventId ?? "" });
      gate.resolve();
      expect([(await working).kind, (await queued).kind]).toEqual(["done", "done"]);

      expect(whole.name).toBe("whole");
      const asked = requests().length;
      const reopened = await runtime.resumeSession(whole.sessionId, {
        cwd: stage.folder,
        model: { name: "alpha/large" },
      });
      await reopened.queue.whenIdle();
      expectPaired(reopened.events);
      expect(reopened.workspace.services?.schedules?.()?.list()).toEqual([]);
      expect(dataOf(reopened.events, "user.message").map(({ content }) => content)).toEqual(["first", "second"]);
      await reopened.close();
      expect(requests()).toHaveLength(asked);

      const early = await runtime.resumeSession(part.sessionId, { cwd: stage.folder, model: { name: "alpha/large" } });
      await early.sendAndWait({ prompt: "instead" });
      const last = requests().at(-1);
      expect(last && texts(last)).toEqual(["first", "one", "instead"]);
      await early.close();
    });
  });

  it("a fork at a message that does not exist is refused and leaves nothing behind", async () => {
    await onStage([says("one")], {}, async (stage) => {
      const { session, runtime } = stage;
      await session.sendAndWait({ prompt: "first" });
      const fork = (more: object) => runtime.forkSession({ sessionId: session.id, session, ...more });
      await expect(fork({ toEventId: "nowhere" })).rejects.toThrow("Event nowhere not found");
      await expect(fork({ toEventId: session.events[0]?.id })).rejects.toThrow("forked at its beginning");
      await expect(runtime.forkSession({ sessionId: "nobody" })).rejects.toThrow("There is no session nobody");
      await fork({ name: "twin" });
      await expect(fork({ name: "twin" })).rejects.toThrow("named");
      expect(readdirSync(join(stage.home, "session-state"))).toHaveLength(2);
      expect(await submit(session, "/fork")).toMatchObject({ kind: "said", text: expect.stringContaining("--resume") });
      expect(await submit(session, "/rewind 1")).toMatchObject({
        kind: "said",
        text: expect.stringContaining("Done."),
      });
      await expect(submit(session, "/rewind 1")).rejects.toThrow("no message 1");
    });
  });
});
