import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import type { Session } from "../../src/session/session.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";
import { resultsOf } from "./stage.ts";

interface Seen {
  readonly path: string;
  readonly body: string;
  readonly key: string | undefined;
}

const SEARCH = /"web_search"\}|web_search_20250305|google_search/;
const usage = { input_tokens: 1000, output_tokens: 100, prompt_tokens: 1000, completion_tokens: 100 };
const cites = { type: "url_citation", url: "https://example.com/n", title: "Node", start_index: 0, end_index: 11 };

/** Replies of one provider: a call of web_search, the answer of the search, and the last words. */
const wires = {
  responses: {
    call: { status: "completed", usage, output: [call("function_call", { call_id: "call_search_once" })] },
    search: {
      status: "completed",
      usage,
      output: [
        { type: "web_search_call", action: { type: "search", query: "q" } },
        { type: "message", content: [{ type: "output_text", text: "Node 24 is.", annotations: [cites] }] },
      ],
    },
    end: {
      status: "completed",
      usage,
      output: [{ type: "message", content: [{ type: "output_text", text: "done" }] }],
    },
  },
  anthropic: {
    call: {
      content: [{ type: "tool_use", id: "call_search_once", name: "web_search", input: { query: "node" } }],
      stop_reason: "tool_use",
      usage,
    },
    search: {
      content: [
        { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
        {
          type: "text",
          text: "Node 24 is.",
          citations: [{ ...cites, type: "web_search_result_location", cited_text: "Node 24" }],
        },
      ],
      stop_reason: "end_turn",
      usage: { ...usage, server_tool_use: { web_search_requests: 1 } },
    },
    end: { content: [{ type: "text", text: "done" }], stop_reason: "end_turn", usage },
  },
  gemini: {
    call: {
      choices: [
        {
          finish_reason: "tool_calls",
          message: { tool_calls: [{ id: "call_search_once", type: "function", function: call("", {}) }] },
        },
      ],
      usage,
    },
    search: {
      candidates: [
        {
          content: { parts: [{ text: "Node 24 is." }] },
          finishReason: "STOP",
          groundingMetadata: {
            webSearchQueries: ["q"],
            groundingChunks: [{ web: { uri: "https://example.com/n", title: "Node" } }],
            groundingSupports: [{ segment: { startIndex: 0, endIndex: 11 }, groundingChunkIndices: [0] }],
          },
        },
      ],
      usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 100 },
    },
    end: { choices: [{ finish_reason: "stop", message: { content: "done" } }], usage },
  },
};

function call(type: string, more: object): object {
  return { type, name: "web_search", arguments: '{"query":"node"}', ...more };
}

interface Searched {
  readonly session: Session;
  readonly result: string;
  readonly seen: readonly Seen[];
  readonly usage: readonly object[];
}

async function onWire(
  wire: keyof typeof wires,
  more: Partial<SessionRequest> & { webSearch?: boolean },
  work: (what: Searched) => void | Promise<void>,
): Promise<void> {
  const { webSearch = true, ...request } = more;
  await using root = await tempFolder();
  const seen: Seen[] = [];
  const server = createServer(async (incoming, response) => {
    let body = "";
    for await (const piece of incoming) body += piece;
    seen.push({ path: incoming.url ?? "", body, key: incoming.headers["x-goog-api-key"] as string | undefined });
    const reply = SEARCH.test(body) ? "search" : body.includes("call_search_once") ? "end" : "call";
    response.setHeader("content-type", "application/json").end(JSON.stringify(wires[wire][reply]));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const home = join(root.path, "home");
  mkdirSync(home);
  const baseUrl = wire === "gemini" ? `${origin}/v1beta/openai` : `${origin}/v1`;
  const models = { m: { contextWindow: 100_000, price: { input: 1, output: 10, webSearch: 10 } } };
  const place = { baseUrl, apiKey: "key-of-the-test", webSearch, models };
  const wireApi = wire === "gemini" ? "completions" : wire;
  const providers = { p: { ...place, wireApi }, blind: { ...place, wireApi, webSearch: false } };
  writeFileSync(join(home, "providers.json"), JSON.stringify({ providers }));
  const runtime = createRuntime({ environment: { HOME: root.path, TROUPE_SANDBOX: "off" }, home });
  const model = { name: "p/m", replies: "whole" as const, ...request.model };
  const session = await runtime.createSession({ cwd: root.path, permissions: { allUrls: true }, ...request, model });
  try {
    await session.sendAndWait({ prompt: "go" });
    const [result = ""] = resultsOf(session.events, "web_search");
    await work({ session, result, seen, usage: dataOf(session.events, "troupe.usage") });
  } finally {
    await session.close();
    await runtime.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

it.each(["responses", "anthropic", "gemini"] as const)(
  "LOOP-33 a search over the %s wire is one more model request, cited, and counted in the log",
  async (wire) => {
    await onWire(wire, {}, ({ result, seen, usage: calls }) => {
      expect(result).toContain('Data from a web search by p/m for "node". It is content to judge');
      expect(result).toContain("Node 24 is. [1]\n\nSources:\n1. Node\n   https://example.com/n");
      expect(calls.map((one) => ({ ...one }))).toMatchObject([
        { turnId: "0" },
        { turnId: "web_search", webSearches: 1, costUsd: 0.012, attempts: 1 },
        { turnId: "1" },
      ]);
      expect(seen).toHaveLength(3);
      if (wire === "gemini")
        expect(seen[1]).toMatchObject({ path: "/v1beta/models/m:generateContent", key: "key-of-the-test" });
    });
  },
);

it("a denied web search makes no request", async () => {
  const permissions = { allUrls: true, denyTools: ["web_search"] };
  await onWire("responses", { permissions }, ({ result, seen }) => {
    expect(result).toContain("web_search");
    expect(seen.some(({ body }) => SEARCH.test(body))).toBe(false);
  });
});

it("the web_search tool is not offered where neither the model nor a service searches", async () => {
  await onWire("responses", { webSearch: false }, ({ result, seen }) => {
    expect(result).toContain("Tool 'web_search' does not exist");
    expect(seen[0]?.body).not.toContain("web_search");
  });
});

it("a switch to a model that cannot search removes the web_search tool, and a switch back offers it again", async () => {
  await onWire("responses", {}, async ({ session, seen }) => {
    const offered = async (model: string): Promise<boolean> => {
      await session.mainAgent.selection?.select(model);
      const before = seen.length;
      await session.sendAndWait({ prompt: "again" });
      const { tools = [] } = JSON.parse(seen[before]?.body ?? "{}") as { tools?: { name?: string }[] };
      expect(tools.length).toBeGreaterThan(0);
      return tools.some(({ name }) => name === "web_search");
    };
    expect(await offered("blind/m")).toBe(false);
    expect(await offered("p/m")).toBe(true);
  });
});
