import { expect, it } from "vitest";
import type { SessionEvent } from "../../protocol/event.ts";
import { stateOf } from "./message-state.ts";

let count = 0;
const event = (type: string, data: object): SessionEvent =>
  ({ id: `e${++count}`, timestamp: "2026-01-01T00:00:00Z", parentId: null, type, data }) as unknown as SessionEvent;
const asked = event("user.message", { content: "Act.", source: "work-1", interactionId: "m1" });
const said = (content: string) => event("assistant.message", { messageId: "a1", content, toolRequests: [] });

it("the answer to the message of a piece of work is found", () => {
  expect(stateOf([asked, said("done")], "work-1")).toEqual({ answer: "done" });
});

it("takes what the model had said when its worker stopped for no answer", () => {
  const half = [asked, said("The first half"), event("abort", { reason: "user initiated" })];
  expect(stateOf(half, "work-1")).toBe("interrupted");
  const again = event("user.message", { content: "Go on.", source: "work-1", interactionId: "m2" });
  expect(stateOf([...half, again, said("done")], "work-1")).toEqual({ answer: "done" });
});
