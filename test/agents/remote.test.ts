import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { findAgent } from "../../src/agents/names.ts";
import { loadRemote, remoteAgents } from "../../src/catalog/agents/agents-remote.ts";
import { rememberRemote } from "../../src/catalog/agents/agents-remote-memory.ts";
import { HANG_MS } from "../support/work.ts";
import { agent, agentStage, customNames } from "./stage.ts";

async function serve(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    fetch: remoteAgents({ baseUrl: `http://127.0.0.1:${port}/api/`, token: "secret", repository: "acme/shop" }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const answer =
  (body: unknown, status = 200): RequestListener =>
  (_request, response) =>
    void response
      .writeHead(status, { location: "http://127.0.0.1:1/" })
      .end(typeof body === "string" ? body : JSON.stringify(body));

it("ORC-22 a server that failed is asked again after 60 s or when it is forgotten, one that answered only when forgotten", async () => {
  let now = 0;
  let asked = 0;
  let isUp = false;
  const { remote, forgetRemote } = rememberRemote(
    async () => {
      asked++;
      if (!isUp) throw new Error("down");
      return asked;
    },
    () => now,
  );
  const { signal } = new AbortController();
  const ask = () => remote(signal).catch((error: Error) => error.message);
  expect([await ask(), await ask(), asked]).toEqual(["down", "down", 1]);
  forgetRemote();
  expect([await ask(), asked]).toEqual(["down", 2]);
  isUp = true;
  now = 59_999;
  expect(await ask()).toBe("down");
  now = 60_000;
  expect(await ask()).toBe(3);
  now = 600_000;
  expect([await ask(), asked]).toEqual([3, 3]);
  forgetRemote();
  expect(await ask()).toBe(4);
});

describe("agents of a server", () => {
  it("ORC-22 remote agents come after all others, from definitions or from Markdown", async () => {
    let asked = "";
    await using server = await serve((request, response) => {
      asked = `${request.method} ${request.url} ${request.headers.authorization}`;
      const agents = [
        {
          name: "Org Reviewer",
          prompt: "Review.",
          description: "reviews",
          display_name: "Org",
          tools: ["read"],
          extra: 1,
        },
        { name: "written", content: agent("Written Down") },
        { name: "mine", prompt: "Not used." },
        { name: "explore", prompt: "Hostile." },
        { name: "no prompt" },
        null,
      ];
      response.end(JSON.stringify({ agents }));
    });
    await using stage = await agentStage({ "home/.troupe/agents/mine.md": agent("mine") });
    const catalog = await stage.load({ remote: server.fetch });
    expect(asked).toBe("GET /api/agents/swe/custom-agents/acme/shop Bearer secret");
    expect(customNames(catalog)).toEqual(["mine (user)", "Org Reviewer (remote)", "Written Down (remote)"]);
    expect(findAgent("org-reviewer", catalog.agents)).toMatchObject({ displayName: "Org", tools: ["view"] });
    expect(catalog.notices.map(({ kind }) => kind)).toEqual(["broken", "broken", "clash", "clash"]);
  });

  it.each([
    ["an error", answer("nope", 500), /answered 500/],
    ["a redirect", answer("", 302), /answered 302/],
    ["no JSON", answer("<html>"), /not JSON/],
    ["no list", answer({ agents: 5 }), /no list of agents/],
    ["too much", answer("x".repeat(1_100_000)), /larger than 1024 KiB/],
    ["nothing and closes", ((request) => request.destroy()) as RequestListener, /ECONNRESET/],
  ])("ORC-22 cause a notice, and no failure, when the server sends %s", async (_what, listener, message) => {
    await using server = await serve(listener);
    await using stage = await agentStage({ "home/.troupe/agents/mine.md": agent("mine") });
    const catalog = await stage.load({ remote: server.fetch });
    expect(customNames(catalog)).toEqual(["mine (user)"]);
    expect(catalog.notices).toEqual([{ kind: "remote", path: "remote", message: expect.stringMatching(message) }]);
    expect(JSON.stringify(catalog.notices)).not.toContain("secret");
  });

  it.each([
    ["never answers", () => undefined],
    ["answers for ever", (_request, response) => void setInterval(() => response.write(" "), 20).unref()],
  ] satisfies [string, RequestListener][])("remote agents are given up when the server %s", async (_what, listener) => {
    await using server = await serve(listener);
    const messages: string[] = [];
    const start = performance.now();
    const note = ({ message }: { message: string }): void => void messages.push(message);
    expect(await loadRemote(server.fetch, { note, withinMs: 150 })).toEqual([]);
    expect(performance.now() - start).toBeLessThan(HANG_MS);
    expect(messages).toHaveLength(1);
  });

  it("remote agents are abandoned even if the request ignores the signal", async () => {
    const messages: string[] = [];
    const note = ({ message }: { message: string }): void => void messages.push(message);
    await loadRemote(() => new Promise(() => undefined), { note, withinMs: 30 });
    expect(messages).toEqual(["Remote agents are not used: no answer within 0.03 s."]);
  });

  it.each([
    ["http://example.test/", "acme/shop"],
    ["ftp://127.0.0.1/", "acme/shop"],
    ["https://user:word@example.test/", "acme/shop"],
    ["not an address", "acme/shop"],
    ["https://example.test/", "acme"],
    ["https://example.test/", "../.."],
    ["https://example.test/", "acme/shop?x=1"],
  ])("remote agents are not requested from %s for %s", (baseUrl, repository) => {
    expect(() => remoteAgents({ baseUrl, token: "t", repository })).toThrow(/cannot be used|owner\/name/);
  });
});
