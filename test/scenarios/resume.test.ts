import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, fails, says, stalls } from "../../src/model/faux/faux-step.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import type { Store } from "../../src/store/store.ts";
import { expectPaired, story } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { taskComplete } from "../../src/tools/agents/task-complete.ts";
import { dataOf, echo, stage, tool } from "../support/stage.ts";

async function withStore(test: (store: Store, file: string) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
  await test(store, join(folder.path, "session-state", "session-1", "events.jsonl"));
}

describe("LOOP-20: resume", () => {
  it("a resumed session continues with the full history, and reading the log back gives the same messages", () =>
    withStore(async (store) => {
      const first = await stage([calls(["echo", { text: "hi" }], ["nope", {}]), says("one")], { store });
      await first.session.sendAndWait({ prompt: "first" });
      const before = first.session.events;
      await first.session.close();

      const second = await stage([says("two")], { store, resume: "session-1" });
      expect(second.session.events.slice(0, before.length)).toEqual(before);
      await second.session.sendAndWait({ prompt: "second" });
      const [request] = second.model.requests;
      expect(request?.messages.slice(0, 4)).toEqual(first.model.requests[1]?.messages);
      expect(request?.messages.slice(4)).toEqual([
        { role: "assistant", content: "one", calls: [] },
        { role: "user", content: "second" },
      ]);
      expect(second.session.record.budget.session.calls).toBe(3);
      expect(second.session.record.budget.run.calls).toBe(1);
      await second.session.close();
    }));

  it("a resumed session closes interrupted calls once, however often the session is opened", () =>
    withStore(async (store, file) => {
      const first = await stage([calls(["echo", { text: "a" }], ["wait"])], {
        store,
        tools: [echo, tool("wait", () => new Promise(() => undefined))],
      });
      await first.session.send({ prompt: "go" });
      const written = (type: string) => readFileSync(file, "utf8").split(`"${type}"`).length - 1;
      await expect.poll(() => [written("tool.execution_start"), written("tool.execution_complete")]).toEqual([2, 1]);
      // The process dies here: only what is in the file is left.
      const left = readFileSync(file, "utf8");
      first.session.abort();
      await first.session.close();
      writeFileSync(file, left);

      const second = await stage([], { store, resume: "session-1" });
      expectPaired(second.session.events);
      const interrupted = dataOf(second.session.events, "tool.execution_complete").filter(({ success }) => !success);
      expect(interrupted).toMatchObject([{ error: { code: "interrupted" } }]);
      expect(dataOf(second.session.events, "assistant.turn_end")).toHaveLength(1);
      await second.session.close();
      const third = await stage([says("valid")], { store, resume: "session-1" });
      expect(dataOf(third.session.events, "tool.execution_complete")).toHaveLength(2);
      expect((await third.session.sendAndWait({ prompt: "next" })).kind).toBe("done");
      expect(third.model.requests[0]?.messages.map(({ role }) => role)).toEqual([
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
      ]);
      await third.session.close();
    }));

  /** Kills a session that answers "one" while "two" waits. */
  async function killedWithTwo(store: Store, file: string): Promise<void> {
    const first = await stage([stalls()], { store });
    await first.session.send({ prompt: "one" });
    await first.session.send({ prompt: "two" });
    const left = readFileSync(file, "utf8");
    const closing = first.session.close();
    first.session.abort();
    await closing;
    writeFileSync(file, left);
  }

  it("LOOP-20 a resumed session answers accepted messages that still waited when pending work continues", () =>
    withStore(async (store, file) => {
      await killedWithTwo(store, file);
      const second = await stage([says("a"), says("b")], { store, resume: "session-1", continuesPending: true });
      second.session.queue.resume();
      await second.session.queue.whenIdle();
      expect(dataOf(second.session.events, "assistant.message").map(({ content }) => content)).toEqual(["a", "b"]);
      await second.session.close();
    }));

  it("LOOP-20 a resumed session answers waiting messages before the next when pending work does not continue", () =>
    withStore(async (store, file) => {
      await killedWithTwo(store, file);
      const second = await stage([says("a"), says("b")], { store, resume: "session-1" });
      second.session.queue.resume();
      await second.session.queue.whenIdle();
      expect(second.session.queue.waiting.queued).toMatchObject([{ content: "two" }]);
      await second.session.sendAndWait({ prompt: "three" });
      expect(dataOf(second.session.events, "user.message").map(({ content }) => content)).toEqual([
        "one",
        "two",
        "three",
      ]);
      await second.session.close();
    }));

  describe("a message that was being answered when its process was killed", () => {
    /** Runs a session until `text` is in its log, and leaves the file as a kill would. */
    async function killedAt(store: Store, file: string, text: string): Promise<void> {
      const never = tool("wait", () => new Promise(() => undefined));
      const steps = text === "assistant.turn_start" ? [stalls()] : [calls(["echo", { text: "a" }], ["wait"])];
      const first = await stage(steps, { store, tools: [echo, never] });
      await first.session.send({ prompt: "an order" });
      await expect.poll(() => readFileSync(file, "utf8")).toContain(text);
      const left = readFileSync(file, "utf8");
      first.session.abort();
      await first.session.close();
      writeFileSync(file, left);
    }

    const points = ["assistant.turn_start", "tool.execution_complete"];

    it.each(points)(
      "a message in progress gets one outcome however often the session is resumed, killed after %s",
      (point) =>
        withStore(async (store, file) => {
          await killedAt(store, file, point);
          for (let opening = 1; opening <= 3; opening++) {
            const later = await stage([], { store, resume: "session-1" });
            expect(dataOf(later.session.events, "session.error")).toMatchObject([{ errorType: "interrupted" }]);
            await later.session.close();
          }
        }),
    );

    it.each(points)("a message in progress is answered when pending work continues, killed after %s", (point) =>
      withStore(async (store, file) => {
        await killedAt(store, file, point);
        const later = await stage([says("the answer")], { store, resume: "session-1", continuesPending: true });
        later.session.queue.resume();
        await later.session.queue.whenIdle();
        expect(dataOf(later.session.events, "assistant.message").at(-1)).toMatchObject({ content: "the answer" });
        expect(dataOf(later.session.events, "session.error")).toEqual([]);
        await later.session.close();
        const again = await stage([], { store, resume: "session-1", continuesPending: true });
        again.session.queue.resume();
        await again.session.queue.whenIdle();
        expect(dataOf(again.session.events, "session.error")).toEqual([]);
        await again.session.close();
      }),
    );

    it.each<[string, Parameters<typeof stage>[0], Parameters<typeof stage>[1]]>([
      ["was answered", [says("done")], {}],
      ["was completed by a tool", [calls(["task_complete", { summary: "Done." }])], { tools: [taskComplete] }],
      ["failed", [fails(400)], {}],
    ])("a message in progress gets no second outcome when it %s", (_, steps, more) =>
      withStore(async (store) => {
        const first = await stage(steps, { store, ...more });
        await first.session.sendAndWait({ prompt: "go" });
        await first.session.close();
        const before = dataOf(first.session.events, "session.error").length;
        const second = await stage([], { store, resume: "session-1", continuesPending: true });
        second.session.queue.resume();
        await second.session.queue.whenIdle();
        expect(dataOf(second.session.events, "session.error")).toHaveLength(before);
        await second.session.close();
        const third = await stage([], { store, resume: "session-1" });
        expect(dataOf(third.session.events, "session.error")).toHaveLength(before);
        await third.session.close();
      }),
    );
  });

  it("a resumed session reports damage once, in the log itself", () =>
    withStore(async (store, file) => {
      const first = await stage([says("one")], { store });
      await first.session.sendAndWait({ prompt: "first" });
      await first.session.close();
      const lines = readFileSync(file, "utf8").split("\n");
      const at = lines.findIndex((line) => line.includes('"assistant.message"'));
      lines[at] = (lines[at] ?? "").replace('"one"', '"eno"');
      writeFileSync(file, lines.join("\n"));

      const second = await stage([], { store, resume: "session-1" });
      expect(dataOf(second.session.events, "troupe.log_damage")).toMatchObject([{ damage: [{ line: at + 1 }] }]);
      await second.session.close();
      const third = await stage([], { store, resume: "session-1" });
      expect(dataOf(third.session.events, "troupe.log_damage")).toHaveLength(1);
      await third.session.close();
    }));

  it("resume is refused while another process writes the session", () =>
    withStore(async (store) => {
      const first = await stage([says("one")], { store });
      await first.session.sendAndWait({ prompt: "first" });
      await expect(stage([], { store, resume: "session-1" })).rejects.toThrow(/in use by process/);
      await first.session.close();
    }));

  it("LOOP-10 session.task_complete keeps its summary after resume", () =>
    withStore(async (store) => {
      const first = await stage([calls(["task_complete", { summary: "All done." }])], { store, tools: [taskComplete] });
      expect((await first.session.sendAndWait({ prompt: "go" })).kind).toBe("done");
      await first.session.close();
      const second = await stage([], { store, resume: "session-1" });
      expect(dataOf(second.session.events, "session.task_complete")).toEqual([{ summary: "All done.", success: true }]);
      expect(story(second.session.events)).toContain("root session.task_complete");
      await second.session.close();
    }));
});
