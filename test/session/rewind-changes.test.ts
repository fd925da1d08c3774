import { expect, it } from "vitest";
import type { StoredChange } from "../../src/checkpoints/checkpoints.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { changesSince } from "../../src/session/rewind/rewind-files.ts";
import { removedPart } from "../../src/session/rewind/rewind-points.ts";

const missing = { kind: "missing" } as const;

const change = (seq: number, turn: string, toolCallId: string, time: string): StoredChange => ({
  ...{ seq, turn, toolCallId, time, path: `/w/${seq}` },
  ...{ before: missing, after: missing, folders: [] },
});

const event = (type: string, timestamp: string, data: object, agentId?: string): SessionEvent =>
  ({ type, timestamp, data, id: timestamp, parentId: null, ...(agentId && { agentId }) }) as unknown as SessionEvent;

it("a rewind reverts a change that a background agent made while the main agent answered no message", () => {
  const removed = [
    event("user.message", "2026-01-01T10:00:00Z", { content: "go", interactionId: "message" }),
    event("tool.execution_start", "2026-01-01T10:01:00Z", { toolCallId: "call-2" }, "kid"),
  ];
  const changes = [
    change(1, "earlier message", "call-1", "2026-01-01T09:00:00Z"),
    // An earlier call with the same id is none of them.
    change(2, "earlier message", "call-2", "2026-01-01T09:00:01Z"),
    change(3, "a notice", "call-2", "2026-01-01T10:01:01Z"),
  ];
  expect(changesSince(changes, removedPart(removed)).map(({ seq }) => seq)).toEqual([3]);
});
