import {
  approveAll,
  CanvasError,
  type CanvasOptions,
  type CopilotClient,
  type CopilotSession,
  createCanvas,
  type SessionEvent,
} from "@github/copilot-sdk";
import { afterEach, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { joining, type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
const joined: CopilotClient[] = [];
shared(
  async () => {
    stage = await serverStage({ transport: "tcp" });
    await stage.client.start();
  },
  () => stage[Symbol.asyncDispose](),
);
afterEach(() => Promise.all(joined.splice(0).map((client) => client.forceStop())));

function another(): CopilotClient {
  const client = joining(stage.client);
  joined.push(client);
  return client;
}

/** A board that remembers what it was asked. */
function board(more: Partial<CanvasOptions> = {}) {
  const asked: unknown[] = [];
  const canvas = createCanvas({
    id: "board",
    displayName: "Board",
    description: "Shows cards.",
    inputSchema: { type: "object", properties: { topic: { type: "string" } } },
    actions: [
      {
        name: "add",
        description: "Adds a card.",
        handler: ({ instanceId, input }) => {
          asked.push({ instanceId, add: input });
          return { cards: 1 };
        },
      },
      {
        name: "burn",
        handler: () => {
          throw new CanvasError("too_hot", "Not today.");
        },
      },
    ],
    open: ({ instanceId, input, session, host }) => {
      asked.push({ instanceId, input, host, folder: session?.workingDirectory });
      return { url: `http://127.0.0.1/${asked.length}`, title: "The board" };
    },
    onClose: ({ instanceId }) => void asked.push({ closed: instanceId }),
    ...more,
  });
  return { canvas, asked };
}

const next = (session: CopilotSession, type: SessionEvent["type"]): Promise<SessionEvent> =>
  new Promise((resolve) => {
    const stop = session.on((event) => {
      if (event.type !== type) return;
      stop();
      resolve(event);
    });
  });

const offered = (): string[] => stage.model.requests.at(-1)?.request?.tools.map(({ name }) => name) ?? [];

describe("canvases of clients", () => {
  it("canvases are listed, opened, used and closed by other clients, and all are notified", async () => {
    const { canvas, asked } = board();
    const owner = await stage.client.createSession({ canvases: [canvas] });
    const heard: SessionEvent[] = [];
    const guest = await another().resumeSession(owner.sessionId, { onEvent: (event) => heard.push(event) });
    const { canvases } = await guest.rpc.canvas.list();
    expect(canvases).toMatchObject([{ canvasId: "board", displayName: "Board", actions: [{ name: "add" }, {}] }]);
    const [{ extensionId } = { extensionId: "" }] = canvases;
    expect(extensionId).toMatch(/^connection:/);

    const open = await guest.rpc.canvas.open({ canvasId: "board", instanceId: "b1", input: { topic: "x" } });
    const shown = {
      ...{ canvasId: "board", instanceId: "b1", extensionId },
      title: "The board",
      input: { topic: "x" },
    };
    expect(open).toEqual({ ...shown, url: "http://127.0.0.1/1" });
    expect(guest.openCanvases).toEqual([open]);
    expect(await guest.rpc.canvas.action.invoke({ instanceId: "b1", actionName: "add", input: 7 })).toEqual({
      result: { cards: 1 },
    });
    await guest.rpc.canvas.open({ canvasId: "board", instanceId: "b1" });
    expect((await owner.rpc.canvas.listOpen()).openCanvases).toMatchObject([{ url: "http://127.0.0.1/3" }]);
    await guest.rpc.canvas.close({ instanceId: "b1" });
    expect((await owner.rpc.canvas.listOpen()).openCanvases).toEqual([]);
    const folder = stage.folder.at("work");
    expect(asked).toEqual([
      { instanceId: "b1", input: { topic: "x" }, host: undefined, folder },
      { instanceId: "b1", add: 7 },
      { instanceId: "b1", input: undefined, host: undefined, folder },
      { closed: "b1" },
    ]);
    const told = heard.filter(({ type }) => type.startsWith("session.canvas."));
    expect(told.map(({ type }) => type.slice("session.canvas.".length))).toEqual([
      ...["recorded", "opened", "recorded", "opened"],
      ...["removed", "closed"],
    ]);
    await owner.disconnect();
  });

  it("a canvas reports errors, with the client's text where they are the client's", async () => {
    const { canvas } = board();
    const session = await stage.client.createSession({ canvases: [canvas] });
    const { open, close, action } = session.rpc.canvas;
    await expect(open({ canvasId: "chart", instanceId: "c" })).rejects.toThrow(/no canvas "chart"\. There are: board/);
    await expect(close({ instanceId: "b1" })).rejects.toThrow(/No canvas "b1" is open/);
    await open({ canvasId: "board", instanceId: "b1" });
    await expect(action.invoke({ instanceId: "b1", actionName: "melt" })).rejects.toThrow(/It has: add, burn/);
    await expect(action.invoke({ instanceId: "b1", actionName: "burn" })).rejects.toMatchObject({
      message: expect.stringContaining("Not today."),
      data: { code: "too_hot" },
    });
    const other = await another().resumeSession(session.sessionId, { canvases: [board().canvas] });
    await expect(open({ canvasId: "board", instanceId: "b2" })).rejects.toThrow(/Several clients/);
    const [mine, theirs] = (await other.rpc.canvas.list()).canvases;
    expect(mine?.extensionId).not.toBe(theirs?.extensionId);
    await open({ canvasId: "board", instanceId: "b2", extensionId: theirs?.extensionId ?? "" });
    await session.disconnect();
  });

  it("a canvas is removed when its client disconnects", async () => {
    const session = await stage.client.createSession({});
    const client = another();
    await client.resumeSession(session.sessionId, { canvases: [board().canvas] });
    await session.rpc.canvas.open({ canvasId: "board", instanceId: "b1" });
    const closed = next(session, "session.canvas.closed");
    const changed = next(session, "session.canvas.registry_changed");
    await client.forceStop();
    expect((await closed).data).toMatchObject({ instanceId: "b1" });
    expect((await changed).data).toEqual({ canvases: [] });
    expect((await session.rpc.canvas.listOpen()).openCanvases).toEqual([]);
    await expect(session.rpc.canvas.open({ canvasId: "board", instanceId: "b1" })).rejects.toThrow(/No client has any/);
    await session.disconnect();
  });

  it("a canvas of a client with a stable name is reopened when the client or the session is back", async () => {
    const canvasProvider = { id: "app:window-1", name: "The app" };
    const session = await stage.client.createSession({});
    const first = another();
    await first.resumeSession(session.sessionId, { canvasProvider, canvases: [board().canvas] });
    const wish = { canvasId: "board", instanceId: "b1", input: { topic: "x" } };
    const opened = { ...wish, extensionId: "app:window-1", extensionName: "The app" };
    expect(await session.rpc.canvas.open(wish)).toMatchObject(opened);
    const away = next(session, "session.canvas.unavailable");
    await first.forceStop();
    await away;
    await expect(session.rpc.canvas.action.invoke({ instanceId: "b1", actionName: "add" })).rejects.toThrow(
      /is not connected/,
    );
    const back = next(session, "session.canvas.opened");
    const { canvas, asked } = board();
    const second = await another().resumeSession(session.sessionId, { canvasProvider, canvases: [canvas] });
    expect((await back).data).toMatchObject(opened);
    expect(asked).toMatchObject([{ instanceId: "b1", input: { topic: "x" } }]);

    await second.disconnect();
    await session.disconnect();
    const resumed = await another().resumeSession(session.sessionId, { canvasProvider, canvases: [canvas] });
    if (resumed.openCanvases.length === 0) await next(resumed, "session.canvas.opened");
    expect(resumed.openCanvases).toMatchObject([opened]);
    await resumed.rpc.canvas.close({ instanceId: "b1" });
    await resumed.disconnect();
    const later = await another().resumeSession(session.sessionId, { canvasProvider, canvases: [canvas] });
    expect((await later.rpc.canvas.listOpen()).openCanvases).toEqual([]);
    await later.disconnect();
  });
});

describe("an agent and canvases", () => {
  it("an agent opens and uses a canvas where a client shows it, after asking", async () => {
    const { canvas, asked } = board();
    const permissions: unknown[] = [];
    const session = await stage.client.createSession({
      ...{ canvases: [canvas], requestCanvasRenderer: true },
      onPermissionRequest: (request) => {
        permissions.push([request.kind, Reflect.get(request, "toolName")]);
        return { kind: "approve-once" };
      },
    });
    expect(session.capabilities.ui?.canvases).toBe(true);
    stage.play(
      calls(["list_canvas_capabilities"]),
      calls(["open_canvas", { canvas_id: "board", instance_id: "b1", input: { topic: "x" } }]),
      calls(["invoke_canvas_action", { instance_id: "b1", action_name: "add", input: { text: "y" } }]),
      calls(["invoke_canvas_action", { instance_id: "b1", action_name: "burn" }]),
      says("shown"),
    );
    await session.sendAndWait("Show me.");
    expect(asked).toMatchObject([
      { input: { topic: "x" }, host: { capabilities: { canvases: true } } },
      { add: { text: "y" } },
    ]);
    expect(permissions).toEqual([
      ["custom-tool", "open_canvas"],
      ["custom-tool", "invoke_canvas_action"],
      ["custom-tool", "invoke_canvas_action"],
    ]);
    const results = stage.model.requests.at(-1)?.request?.messages.filter(({ role }) => role === "tool") ?? [];
    expect(results.map(({ content }) => content)).toEqual([
      expect.stringContaining('"displayName": "Board"'),
      expect.stringContaining('"title":"The board"'),
      '{"cards":1}',
      expect.stringContaining("Not today."),
    ]);
    await session.disconnect();
  });

  it("an agent has no canvas tools when no client shows or offers canvases", async () => {
    const { canvas } = board();
    const session = await stage.client.createSession({ canvases: [canvas], onPermissionRequest: approveAll });
    stage.play(says("1"), says("2"), says("3"));
    await session.sendAndWait("hello");
    expect(offered()).not.toContain("open_canvas");
    const renderer = another();
    await renderer.resumeSession(session.sessionId, { requestCanvasRenderer: true });
    await session.sendAndWait("hello");
    expect(offered()).toContain("open_canvas");
    const changed = next(session, "capabilities.changed");
    await renderer.forceStop();
    expect((await changed).data).toEqual({ ui: { elicitation: false } });
    await session.sendAndWait("hello");
    expect(offered()).not.toContain("open_canvas");
    await session.disconnect();
  });
});
