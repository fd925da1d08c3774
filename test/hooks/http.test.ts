import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { bashCall, hookStage, hooksOf, place, projectOrigin } from "./stage.ts";

const ending = { ...place, reason: "complete" } as const;
const allowLocal = { COPILOT_HOOK_ALLOW_LOCALHOST: "1" };

interface Server extends AsyncDisposable {
  readonly url: string;
  readonly seen: { method: string; headers: IncomingMessage["headers"]; body: string }[];
}

async function listen(answer: (response: ServerResponse) => void): Promise<Server> {
  const seen: Server["seen"] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    seen.push({ method: request.method ?? "", headers: request.headers, body });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const json = (value: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(value));
const guard = (url: string, fields: object = {}) =>
  hooksOf({ preToolUse: [{ type: "http", url, ...fields }] }, { environment: allowLocal });
const lastError = (events: { type: string; data: Record<string, unknown> }[]) =>
  events.findLast(({ type }) => type === "hook.end")?.data.error;

describe("an HTTP hook", () => {
  it("an HTTP hook receives the payload as JSON, and its reply is the answer", async () => {
    await using server = await listen(json({ permissionDecision: "deny", permissionDecisionReason: "not today" }));
    const { hooks } = hookStage(guard(server.url), { environment: allowLocal });
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({
      permissionDecision: "deny",
      permissionDecisionReason: "not today",
    });
    expect(server.seen[0]).toMatchObject({ method: "POST", headers: { "content-type": "application/json" } });
    expect(JSON.parse(server.seen[0]?.body ?? "")).toEqual({
      ...bashCall,
      toolArgs: '{"command":"ls"}',
      timestamp: Date.UTC(2026, 0, 1),
    });
  });

  it("an HTTP hook expands in its headers only the variables it lists", async () => {
    await using server = await listen(json({}));
    const headers = {
      Authorization: "Bearer $TOKEN",
      "X-Other": "<$HOME>",
      Host: "elsewhere",
      "Content-Length": "1",
    };
    const definitions = hooksOf(
      { sessionEnd: [{ type: "http", url: server.url, headers, allowedEnvVars: ["TOKEN"] }] },
      { environment: allowLocal },
    );
    const environment = { ...allowLocal, TOKEN: "t-1", HOME: "/home/me" };
    await hookStage(definitions, { environment }).hooks.fire("sessionEnd", ending);
    const seen = server.seen[0]?.headers;
    expect([seen?.authorization, seen?.["x-other"], seen?.host?.startsWith("127.0.0.1")]).toEqual([
      "Bearer t-1",
      "<>",
      true,
    ]);
  });

  it("an HTTP hook gets no secret when it belongs to a project, whatever it lists", async () => {
    await using server = await listen(json({}));
    const fields = {
      type: "http",
      url: server.url,
      headers: { A: "[$MY_TOKEN$TERM]" },
      allowedEnvVars: ["MY_TOKEN", "TERM"],
    };
    const definitions = hooksOf({ sessionEnd: [fields] }, { origin: projectOrigin, environment: allowLocal });
    const environment = { ...allowLocal, MY_TOKEN: "t-1", TERM: "dumb" };
    await hookStage(definitions, { environment }).hooks.fire("sessionEnd", ending);
    expect(server.seen[0]?.headers.a).toBe("[dumb]");
  });

  it.each([
    [
      "an error",
      (response: ServerResponse) => void response.writeHead(500).end("no"),
      "the server answered with status 500",
    ],
    ["a redirect", (response: ServerResponse) => void response.writeHead(302, { location: "/x" }).end(), "status 302"],
    ["no JSON", (response: ServerResponse) => void response.end("<html>"), "it is not JSON"],
    ["a wrong type", json({ permissionDecision: "perhaps" }), "permissionDecision"],
    [
      "too much",
      (response: ServerResponse) => void response.end("x".repeat(1024 * 1024 + 1)),
      "more than 1048576 bytes",
    ],
    ["silence", () => undefined, "it did not answer within 0.1 s"],
    [
      "half a reply",
      (response: ServerResponse) => void response.write("{", () => response.socket?.destroy()),
      "the request failed",
    ],
  ])(
    "an HTTP hook that decides denies when the server answers with %s; other points record the error",
    async (_, answer, message) => {
      await using server = await listen(answer);
      const timeoutSec = message.includes("0.1") ? 0.1 : 20;
      const deciding = hookStage(guard(server.url, { timeoutSec }), { environment: allowLocal });
      const said = await deciding.hooks.fire("preToolUse", bashCall);
      expect(said.permissionDecision).toBe("deny");
      expect(said.permissionDecisionReason).toContain(message);
      const open = hookStage(guard(server.url, { timeoutSec, onFailure: "open" }), { environment: allowLocal });
      expect(await open.hooks.fire("preToolUse", bashCall)).toEqual({});
      expect(lastError(open.events)).toMatchObject({ message: expect.stringContaining(message) });
      expect(server.seen.length).toBeLessThanOrEqual(2);
    },
  );

  it("an HTTP hook that decides denies when the server cannot be reached", async () => {
    const { hooks } = hookStage(guard("http://127.0.0.1:1/"), { environment: allowLocal });
    expect(await hooks.fire("preToolUse", bashCall)).toMatchObject({
      permissionDecision: "deny",
      permissionDecisionReason: expect.stringContaining("ECONNREFUSED"),
    });
  });

  it("an HTTP hook is sent to the address that was checked, and never to one in the local network", async () => {
    await using server = await listen(json({}));
    const url = server.url.replace("127.0.0.1", "hook.example");
    const asked: string[] = [];
    const resolveName = async (host: string) => {
      asked.push(host);
      return [{ address: "127.0.0.1", family: 4 }];
    };
    const observing = hooksOf({ sessionEnd: [{ type: "http", url }] });
    await hookStage(observing, { resolveName, environment: {} }).hooks.fire("sessionEnd", ending);
    expect([asked, server.seen.length]).toEqual([["hook.example"], 1]);

    const plain = { COPILOT_HOOK_ALLOW_HTTP_AUTH_HOOKS: "1" };
    const deciding = hooksOf({ preToolUse: [{ type: "http", url }] }, { environment: plain });
    const stage = hookStage(deciding, { resolveName, environment: plain });
    expect(await stage.hooks.fire("preToolUse", bashCall)).toMatchObject({ permissionDecision: "deny" });
    expect(lastError(stage.events)).toMatchObject({
      message: "url: 127.0.0.1 is an address of this machine or its network",
    });
    expect(server.seen).toHaveLength(1);
  });

  it("an HTTP hook is checked again when it runs: a removed exception no longer applies", async () => {
    await using server = await listen(json({}));
    const { hooks } = hookStage(guard(server.url), { environment: {} });
    expect(await hooks.fire("preToolUse", bashCall)).toMatchObject({ permissionDecision: "deny" });
    expect(server.seen).toEqual([]);

    const plain = { COPILOT_HOOK_ALLOW_HTTP_AUTH_HOOKS: "1" };
    const http = hooksOf({ preToolUse: [{ type: "http", url: "http://hook.example" }] }, { environment: plain });
    const resolveName = () => Promise.reject(new Error("nobody should ask"));
    expect(await hookStage(http, { environment: {}, resolveName }).hooks.fire("preToolUse", bashCall)).toMatchObject({
      permissionDecisionReason: expect.stringContaining("must begin with https:// for preToolUse"),
    });
  });

  it("an HTTP hook is abandoned when it is aborted", async () => {
    await using server = await listen(() => undefined);
    const { hooks, events } = hookStage(guard(server.url), { environment: allowLocal });
    const controller = new AbortController();
    const firing = expect(hooks.fire("preToolUse", bashCall, { signal: controller.signal })).rejects.toBe("enough");
    await expect.poll(() => server.seen.length).toBe(1);
    controller.abort("enough");
    await firing;
    expect(lastError(events)).toMatchObject({ message: "it was aborted" });
  });
});
