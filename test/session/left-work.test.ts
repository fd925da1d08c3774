import { expect, test } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { Conversation } from "../../src/session/conversation.ts";
import { isSameRequest } from "../../src/session/requests/pending-requests.ts";
import { pendingWork } from "../../src/session/requests/pending-work.ts";

const toolCallId = "call_1";
const started = (toolName: string, given: object, agentId?: string) =>
  [
    ["assistant.turn_start", { turnId: "3" }, agentId],
    [
      "assistant.message",
      { messageId: "m", content: "so", toolRequests: [{ toolCallId, name: toolName, arguments: given }] },
      agentId,
    ],
    ["tool.execution_start", { toolCallId, toolName, arguments: given }, agentId],
  ] as const;
const asked = (requestId: string, permissionRequest: object, more: object = {}) =>
  ["permission.requested", { requestId, permissionRequest: { toolCallId, ...permissionRequest }, ...more }] as const;
const decided = (requestId: string, kind: string) => ["permission.completed", { requestId, result: { kind } }] as const;
const read = { kind: "read", path: "/a", intention: "look" };
const write = { kind: "write", fileName: "/a", diff: "", intention: "edit", canOfferSessionApproval: true };

type Said = readonly [string, object, (string | undefined)?];

function left(...said: readonly Said[]) {
  const events = said.map(
    ([type, data, agentId], index) =>
      ({ id: `e${index}`, timestamp: "", parentId: null, type, data, ...(agentId && { agentId }) }) as SessionEvent,
  );
  const conversation = new Conversation();
  for (const event of events) if (event.agentId === undefined) conversation.apply(event);
  return pendingWork(events, conversation, { cwd: "/here", isOwnFolder: (folder) => folder === "/own" });
}

test("approved requests of a call are not repeated, and undecided ones are", () => {
  const work = left(
    ...started("edit", { path: "/a" }),
    asked("r1", read),
    decided("r1", "approved"),
    asked("r2", write),
  );
  expect(work?.turn).toEqual({
    turnId: "3",
    content: "so",
    calls: [{ call: { toolCallId, name: "edit", arguments: { path: "/a" } } }],
  });
  expect(work?.requests).toMatchObject([{ requestId: "r1", answer: { kind: "approved" } }, { requestId: "r2" }]);
  expect(work?.requests[1]).not.toHaveProperty("answer");
});

test("a request that the end of a process cancelled is pending, but not one that was decided since", () => {
  const begun = [...started("edit", {}), asked("r1", write), decided("r1", "cancelled")];
  expect(left(...begun)?.requests).toMatchObject([{ requestId: "r1", kind: "permission" }]);
  expect(left(...begun, decided("r1", "approved"))).toBeUndefined();
});

test("a request from another folder is repeated, whatever the answer was", () => {
  const place = (cwd: string): Said => ["session.start", { context: { cwd } }];
  const said = [...started("bash", {}), asked("r1", read), decided("r1", "approved"), asked("r2", write)];
  const sameness = (cwd: string) =>
    left(place(cwd), ...said)?.requests.map((one) => isSameRequest(one, structuredClone(one.data)));
  expect(sameness("/here")).toEqual(["same", "same"]);
  expect(sameness("/there")).toEqual(["other", "changed"]);
});

test("a request for the session's own folder is not repeated on another machine", () => {
  const place: Said = ["session.start", { context: { cwd: "/own" } }];
  const writing = (fileName: string) => ({ toolCallId, ...write, fileName });
  const sameness = (before: string, now: string) => {
    const request = left(place, ...started("edit", {}), asked("r1", writing(before)))?.requests[0];
    return request && isSameRequest(request, { permissionRequest: writing(now) });
  };
  expect(sameness("/a", "/a")).toBe("same");
  expect(sameness("/own/a", "/here/a")).toBe("same");
  expect(sameness("/own", "/here")).toBe("same");
  // The call names the old folder, or one beside it.
  expect(sameness("/own/a", "/own/a")).toBe("changed");
  expect(sameness("/owner/a", "/hereer/a")).toBe("changed");
});

test("a request for a decision that a hook requires is repeated", () => {
  const hook = { kind: "hook", toolName: "edit", hookMessage: "Is that wise?" };
  expect(left(...started("edit", {}), asked("r1", hook))?.turn.calls).toMatchObject([{ ask: "Is that wise?" }]);
});

test("a call continues with the arguments that a hook has changed", () => {
  const changed = ["troupe.call_changed", { toolCallId, arguments: { path: "/b" } }] as const;
  const work = left(...started("edit", { path: "/a" }), changed, asked("r1", write));
  expect(work?.turn.calls[0]?.call.arguments).toEqual({ path: "/b" });
});

test("a client's tool is called if it was permitted and never reached the client", () => {
  const permitted = ["troupe.permission", { toolCallId, toolName: "mine", kind: "custom-tool", decision: "allowed" }];
  const work = left(...started("mine", {}), permitted as unknown as Said);
  expect(work?.requests).toEqual([]);
  expect(work?.turn.calls[0]?.tool?.name).toBe("mine");
});

test("a client's tool without a decision is called by the client when it is back", () => {
  const request = { kind: "custom-tool", toolName: "mine", toolDescription: "Mine." };
  const [call] = left(...started("mine", {}), asked("r1", request))?.turn.calls ?? [];
  expect(call?.tool).toBeUndefined();
  expect(call?.otherwise?.name).toBe("mine");
});

test("a canvas without a decision is opened by troupe's own tool, but not one that may have been opened", () => {
  const opening = started("open_canvas", { canvas_id: "board" });
  const request = { kind: "custom-tool", toolName: "open_canvas", toolDescription: "Opens." };
  expect(left(...opening, asked("r1", request))?.turn.calls).toEqual([
    { call: { toolCallId, name: "open_canvas", arguments: { canvas_id: "board" } } },
  ]);
  const permitted = [
    "troupe.permission",
    { toolCallId, toolName: "open_canvas", kind: "custom-tool", decision: "allowed" },
  ];
  expect(
    left(...opening, asked("r1", request), decided("r1", "approved"), permitted as unknown as Said),
  ).toBeUndefined();
});

test.each([
  ["may have begun", [...started("bash", {})]],
  ["was permitted", [...started("bash", {}), asked("r1", write), decided("r1", "approved")]],
  ["a hook decided", [...started("bash", {}), asked("r1", write, { resolvedByHook: true })]],
  ["is another agent's", [...started("bash", {}, "agent"), asked("r1", write)]],
  ["had a secret in it", [...started("bash", { command: "use [redacted:KEY]" }), asked("r1", write)]],
  [
    "has ended",
    [...started("bash", {}), asked("r1", write), ["tool.execution_complete", { toolCallId, success: true }]],
  ],
] as readonly (readonly [string, readonly Said[]])[])("a call that %s is not resumed", (_, said) => {
  expect(left(...said)).toBeUndefined();
});
