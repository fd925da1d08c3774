import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { SystemNotice } from "../../src/session/turn/pending-messages.ts";
import { story } from "../../src/testing/story.ts";
import { dataOf, stage, tool } from "../support/stage.ts";

const notice = (shellId: string): SystemNotice => ({
  content: `<system_notification>\n${shellId} has ended\n</system_notification>`,
  kind: { type: "shell_completed", shellId, exitCode: 0 },
});

describe("a notice to the agent", () => {
  it("a notice wakes an idle agent, which answers", async () => {
    const { session, model } = await stage([says("hello"), says("I see")]);
    await session.sendAndWait({ prompt: "hi" });
    session.queue.notify(notice("one"));
    await session.queue.whenIdle();
    expect(model.requests[1]?.messages.at(-1)).toEqual({ role: "user", content: notice("one").content });
    expect(story(session.events).slice(-5)).toEqual([
      "root system.notification",
      "root assistant.turn_start",
      "root troupe.usage",
      "root assistant.message",
      "root assistant.turn_end",
    ]);
    expect(session.record.title).toBe("hi");
  });

  it("a notice reaches a working agent before its next model call", async () => {
    const busy = tool("busy", async () => {
      session.queue.notify(notice("one"));
      session.queue.notify(notice("two"));
      return "worked";
    });
    const { session, model } = await stage([calls(["busy", {}]), says("both heard")], { tools: [busy] });
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests).toHaveLength(2);
    expect(model.requests[1]?.messages.slice(-2).map(({ content }) => content)).toEqual([
      notice("one").content,
      notice("two").content,
    ]);
  });

  it("notices that arrive together at an idle agent are answered together", async () => {
    const { session, model } = await stage([says("hello"), says("all of them")]);
    await session.sendAndWait({ prompt: "hi" });
    for (const id of ["one", "two", "three"]) session.queue.notify(notice(id));
    await session.queue.whenIdle();
    expect(model.requests).toHaveLength(2);
    expect(dataOf(session.events, "system.notification")).toHaveLength(3);
  });

  it("a notice is placed before a user message that arrives meanwhile, in the same turn", async () => {
    const { session, model } = await stage([says("hello"), says("to both")]);
    await session.sendAndWait({ prompt: "hi" });
    const answered = session.sendAndWait({ prompt: "and now?" });
    session.queue.notify(notice("one"));
    await answered;
    expect(model.requests).toHaveLength(2);
    expect(model.requests[1]?.messages.slice(-2).map(({ content }) => content)).toEqual([
      notice("one").content,
      "and now?",
    ]);
  });
});
