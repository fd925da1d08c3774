import {
  type CopilotRequestContext,
  CopilotRequestHandler,
  CopilotWebSocketCloseStatus,
  CopilotWebSocketHandler,
} from "@github/copilot-sdk";
import { beforeEach, describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

/** What the far end of the next sockets does with the messages it gets. */
type Act = (socket: FarEnd, message: Record<string, unknown>) => unknown;

class FarEnd extends CopilotWebSocketHandler {
  constructor(context: CopilotRequestContext) {
    super(context);
  }

  override async sendRequestMessage(data: string | Uint8Array): Promise<void> {
    const message = JSON.parse(String(data)) as Record<string, unknown>;
    seen.messages.push(message);
    await acts.shift()?.(this, message);
  }

  override async close(status?: CopilotWebSocketCloseStatus): Promise<void> {
    seen.closed.resolve();
    await super.close(status);
  }

  async say(...events: readonly object[]): Promise<void> {
    for (const event of events) await this.sendResponseMessage(JSON.stringify(event));
  }
}

class Carrier extends CopilotRequestHandler {
  protected override sendRequest(request: Request, context: CopilotRequestContext) {
    seen.requests.push(new URL(request.url).pathname);
    return super.sendRequest(request, context);
  }

  protected override async openWebSocket(context: CopilotRequestContext): Promise<CopilotWebSocketHandler> {
    seen.sockets.push(context);
    if (seen.refusesSockets) throw new Error("no sockets here");
    return new FarEnd(context);
  }
}

let acts: Act[] = [];
let seen = fresh();
function fresh() {
  const sockets: CopilotRequestContext[] = [];
  const messages: Record<string, unknown>[] = [];
  return { messages, requests: [] as string[], sockets, refusesSockets: false, closed: deferred<void>() };
}

const created = { type: "response.created", response: { id: "r", status: "in_progress", output: [] } };
const delta = (text: string) => ({
  type: "response.output_text.delta",
  output_index: 0,
  content_index: 0,
  delta: text,
});
const completed = {
  type: "response.completed",
  response: {
    id: "r",
    status: "completed",
    output: [],
    usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
  },
};
const answers =
  (text: string): Act =>
  (socket) =>
    socket.say(created, delta(text), completed);

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage({ requestHandler: new Carrier() });
  },
  () => stage[Symbol.asyncDispose](),
);
beforeEach(() => {
  acts = [];
  seen = fresh();
});

const open = (more: object = {}) =>
  stage.client.createSession({
    model: "mine",
    provider: { wireApi: "responses", transport: "websockets", baseUrl: stage.model.baseUrl, apiKey: "its-own-key" },
    ...more,
  });

describe("a client that opens WebSockets for model requests", () => {
  it("a client's WebSocket carries one turn after another, and is closed with the session", async () => {
    const session = await open({ streaming: true });
    const deltas: string[] = [];
    session.on("assistant.message_delta", ({ data }) => void deltas.push(data.deltaContent));
    acts = [answers("one"), answers("two")];
    expect((await session.sendAndWait("first"))?.data.content).toBe("one");
    expect((await session.sendAndWait("second"))?.data.content).toBe("two");
    expect(deltas.join("")).toBe("onetwo");
    expect(seen.requests).toEqual([]);
    expect(seen.messages).toMatchObject([
      { type: "response.create", model: "mine" },
      { type: "response.create", input: [{ role: "user" }, { role: "assistant", content: "one" }, { role: "user" }] },
    ]);
    const [socket, second] = seen.sockets;
    expect(second).toBeUndefined();
    const { sessionId } = session;
    expect(socket).toMatchObject({ transport: "websocket", sessionId, agentId: sessionId });
    expect(socket?.url).toBe(`${stage.model.baseUrl.replace("http", "ws")}/responses`);
    expect(socket?.headers.authorization).toEqual(["Bearer its-own-key"]);
    const { closed } = seen;
    await session.disconnect();
    await closed.promise;
  });

  it("a client that cannot open a WebSocket sends model requests over HTTP", async () => {
    seen.refusesSockets = true;
    const session = await open();
    stage.play(says("one"), says("two"));
    expect((await session.sendAndWait("first"))?.data.content).toBe("one");
    expect((await session.sendAndWait("second"))?.data.content).toBe("two");
    expect(seen.sockets).toHaveLength(1);
    expect(seen.requests).toEqual(["/v1/responses", "/v1/responses"]);
    await session.disconnect();
  });

  it("a client replaces a WebSocket that closes while it is not in use", async () => {
    const session = await open();
    const closes: Act = async (socket) => {
      await socket.say(created, delta("one"), completed);
      await socket.close();
    };
    acts = [closes, answers("two")];
    expect((await session.sendAndWait("first"))?.data.content).toBe("one");
    expect((await session.sendAndWait("second"))?.data.content).toBe("two");
    expect(seen.sockets).toHaveLength(2);
    await session.disconnect();
  });

  it("a WebSocket that breaks in the middle of a reply is a failed attempt", async () => {
    const session = await open();
    const breaks: Act = async (socket) => {
      await socket.say(created);
      await socket.close(new CopilotWebSocketCloseStatus("cut", undefined, new Error("cut")));
    };
    acts = [breaks, answers("again")];
    expect((await session.sendAndWait("hello"))?.data.content).toBe("again");
    expect(seen.sockets).toHaveLength(2);
    await session.disconnect();
  });

  it("an error on a WebSocket is the same as over HTTP", async () => {
    const session = await open();
    const error = { type: "invalid_request_error", code: "invalid_api_key", message: "Wrong key." };
    acts = [(socket) => socket.say({ type: "error", status: 401, error })];
    await expect(session.sendAndWait("hello")).rejects.toThrow(/Wrong key\. \(HTTP 401\)/);
    expect(seen.messages).toHaveLength(1);
    await session.disconnect();
  });

  it("an abort reaches a WebSocket, and the session continues", async () => {
    const session = await open();
    const begun = new Promise<void>((resolve) => {
      acts = [(socket) => socket.say(created, delta("on and on")).then(resolve)];
    });
    await session.send("hello");
    await begun;
    // The text up to the stop is an answer too, so the next message waits until this turn has ended.
    const idle = new Promise<void>((resolve) => session.on("session.idle", () => resolve()));
    await session.abort();
    await idle;
    const [{ signal } = { signal: AbortSignal.abort() }] = seen.sockets;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    acts = [answers("still here")];
    expect((await session.sendAndWait("hello?"))?.data.content).toBe("still here");
    await session.disconnect();
  });
});
