import { readFile } from "node:fs/promises";
import { approveAll, type CopilotSession, type SessionConfig } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { type ProtectedServer, protectedServer } from "./protected-server.ts";
import { type ServerStage, serverStage } from "./stage.ts";

type Asked = Parameters<NonNullable<SessionConfig["onMcpAuthRequest"]>>[0];
type Answer = { kind: "token"; accessToken: string; tokenType?: string; expiresIn?: number } | { kind: "cancelled" };

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

/** A session with one protected server. What the host is asked, and the events of it, are kept in order. */
async function sessionWith(
  server: ProtectedServer,
  answer: ((request: Asked) => Answer | Promise<Answer>) | undefined,
  entry: { name?: string; type?: "http" | "sse"; url?: string; oauthClientId?: string } = {},
) {
  const { name = "tracker", type = "http", url = server.url, ...more } = entry;
  const asked: Asked[] = [];
  const events: { type: string; data: object }[] = [];
  const config: SessionConfig = {
    onPermissionRequest: approveAll,
    mcpServers: { [name]: { type, url, tools: ["*"], ...more } },
    ...(answer && {
      onMcpAuthRequest: (request) => {
        asked.push(request);
        return answer(request);
      },
    }),
    onEvent: ({ type: kind, data }) => {
      if (kind.startsWith("mcp.oauth") || kind === "session.mcp_server_status_changed")
        events.push({ type: kind, data });
    },
  };
  const session = await stage.client.createSession(config);
  return { session, asked, events };
}

const statusOf = async (session: CopilotSession): Promise<string[]> =>
  (await session.rpc.mcp.list()).servers.map(({ name, status }) => `${name} ${status}`);

const reached = (session: CopilotSession, status: string) => expect.poll(() => statusOf(session)).toEqual([status]);

/** What the model is told by the tool. */
async function askWhoami(session: CopilotSession): Promise<string> {
  stage.play(calls(["tracker-whoami", {}]), says("done"));
  await session.sendAndWait("Who am I?");
  const shown = stage.model.requests.at(-1)?.body as { messages?: { role: string; content: string }[] } | undefined;
  return shown?.messages?.findLast(({ role }) => role === "tool")?.content ?? "";
}

const token = (accessToken: string): Answer => ({ kind: "token", accessToken });

describe("tokens that a client brings for MCP servers", () => {
  it("a client's MCP tokens are requested with the reason, used, and stored nowhere", async () => {
    const server = await protectedServer();
    server.good.set("first-token-1234", []);
    const answers: Answer[] = [
      { kind: "token", accessToken: "first-token-1234", tokenType: "bearer", expiresIn: 3600 },
      token("second-token-1234"),
      token("wide-token-12345"),
      { kind: "cancelled" },
      token("last-token-12345"),
    ];
    const next = () => answers.shift() ?? ({ kind: "cancelled" } as const);
    const { session, asked, events } = await sessionWith(server, next, { oauthClientId: "the-client" });
    await reached(session, "tracker connected");
    expect(asked).toEqual([
      {
        requestId: expect.any(String),
        serverName: "tracker",
        serverUrl: server.url,
        reason: "initial",
        wwwAuthenticateParams: {
          resourceMetadataUrl: `${server.origin}/.well-known/oauth-protected-resource`,
          error: "invalid_token",
        },
        resourceMetadata: JSON.stringify({ resource: server.url, authorization_servers: [server.origin] }),
        staticClientConfig: { clientId: "the-client" },
      },
    ]);
    const replace = (accessToken: string, ...scopes: string[]): void => {
      server.good.clear();
      server.good.set(accessToken, scopes);
    };
    replace("second-token-1234");
    // The server says the token aloud; neither the model nor anyone else gets to read it.
    expect(await askWhoami(session)).toMatch(/you came with: Bearer (?!second)/);
    server.scope = "write";
    server.good.set("wide-token-12345", ["write"]);
    await askWhoami(session);
    replace("last-token-12345", "write");
    await askWhoami(session);
    expect(asked.map(({ reason }) => reason)).toEqual(["initial", "refresh", "upscope", "refresh", "reauth"]);
    expect(asked[2]?.wwwAuthenticateParams).toMatchObject({ scope: "write", error: "insufficient_scope" });
    expect(events.filter(({ type }) => type === "mcp.oauth_completed").map(({ data }) => data)).toEqual(
      asked.map(({ requestId, reason }, index) => ({
        requestId,
        outcome: reason === "refresh" && index > 1 ? "cancelled" : "token",
      })),
    );
    const id = session.sessionId;
    await session.disconnect();
    const log = await readFile(stage.folder.at(`home/session-state/${id}/events.jsonl`), "utf8");
    expect(log).toContain("you came with");
    expect(log).not.toMatch(/(first|second|wide|last)-token/);
    expect(server.seen.filter((header) => !/^(|Bearer (first|second|wide|last)-token-\d+)$/.test(header))).toEqual([]);
  });

  it("a client's missing MCP tokens leave the server without one, and are not requested again unasked", async () => {
    const server = await protectedServer();
    const answers: Answer[] = [{ kind: "cancelled" }, token("good-token-1234")];
    const next = () => answers.shift() ?? ({ kind: "cancelled" } as const);
    const { session, asked } = await sessionWith(server, next);
    await reached(session, "tracker needs-auth");
    await session.rpc.mcp.list();
    stage.play(says("No tools."));
    await session.sendAndWait("Which tools?");
    expect(asked).toHaveLength(1);
    expect(await statusOf(session)).toEqual(["tracker needs-auth"]);
    server.good.set("good-token-1234", []);
    expect(await session.rpc.mcp.oauth.login({ serverName: "tracker" })).toEqual({});
    expect(await statusOf(session)).toEqual(["tracker connected"]);
    expect(asked.map(({ reason }) => reason)).toEqual(["initial", "initial"]);
    await session.disconnect();
  });

  it("a client's MCP tokens may come from any client: the first answer counts, and a late client is asked", async () => {
    const server = await protectedServer();
    server.good.set("good-token-1234", []);
    const { session, asked, events } = await sessionWith(server, () => new Promise(() => undefined));
    await session.rpc.mcp.list();
    await expect.poll(() => asked.length).toBe(1);
    expect(await statusOf(session)).toEqual(["tracker pending"]);
    await session.rpc.eventLog.registerInterest({ eventType: "mcp.oauth_required" });
    await expect.poll(() => asked.length).toBe(2);
    const requestId = asked[0]?.requestId ?? "";
    expect(asked[1]).toEqual(asked[0]);
    const answer = (id: string) =>
      session.rpc.mcp.oauth.handlePendingRequest({
        requestId: id,
        result: { kind: "token", accessToken: "good-token-1234" },
      });
    expect(await answer("nobody")).toEqual({ success: false });
    expect(await answer(requestId)).toEqual({ success: true });
    expect(await answer(requestId)).toEqual({ success: false });
    await reached(session, "tracker connected");
    expect(events.at(-1)).toEqual({
      type: "session.mcp_server_status_changed",
      data: { serverName: "tracker", status: "connected" },
    });
    await session.disconnect();
  });

  it("a client's MCP tokens belong to one session, though others use the same server", async () => {
    const server = await protectedServer();
    server.good.set("alice-token-1234", []).set("bob-token-123456", []);
    const alice = await sessionWith(server, () => token("alice-token-1234"));
    await reached(alice.session, "tracker connected");
    const bob = await sessionWith(server, () => token("bob-token-123456"));
    await reached(bob.session, "tracker connected");
    server.good.delete("alice-token-1234");
    await askWhoami(bob.session);
    expect(bob.asked).toHaveLength(1);
    expect(server.seen.at(-1)).toBe("Bearer bob-token-123456");
    await Promise.all([alice.session.disconnect(), bob.session.disconnect()]);
  });

  it("a client's MCP tokens are sent to servers of the older kind too", async () => {
    const server = await protectedServer();
    server.good.set("good-token-1234", []);
    const entry = { type: "sse", url: `${server.origin}/sse` } as const;
    const { session, asked } = await sessionWith(server, () => token("good-token-1234"), entry);
    await reached(session, "tracker connected");
    expect(asked).toHaveLength(1);
    await session.disconnect();
  });

  it("MCP tokens are not requested where no client offers any", async () => {
    const server = await protectedServer();
    const { session, events } = await sessionWith(server, undefined);
    await reached(session, "tracker needs-auth");
    expect(events.map(({ type }) => type)).not.toContain("mcp.oauth_required");
    await expect(session.rpc.mcp.oauth.login({ serverName: "tracker" })).rejects.toThrow(/troupe mcp login tracker/);
    await session.disconnect();
  });
});
