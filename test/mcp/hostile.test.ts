import { afterAll, describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import type { McpServerPort } from "../../src/tools/mcp/connections.ts";
import { HANG_MS } from "../support/work.ts";
import { callFirst, never, run, scripted, stage, toolsOf } from "./stage.ts";

const mcp = stage({ limits: { backoffMs: 1 } });
const healthy = mcp.use(scripted("good"));
afterAll(() => mcp.close());

/** Whatever one server does, another answers meanwhile. */
async function whileHealthy<T>(work: Promise<T>): Promise<T> {
  const [result] = await Promise.all([work, expect(callFirst(healthy)).resolves.toContain("hello")]);
  expect(await callFirst(healthy)).toContain("hello");
  return result;
}

function failureOf(server: McpServerPort): Promise<Error> {
  return callFirst(server).then(
    (reply) => {
      throw new Error(`It answered: ${reply}`);
    },
    (error: Error) => error,
  );
}

describe("a hostile MCP server hurts only its own calls", () => {
  it("an MCP server that never answers the handshake fails alone", async () => {
    const server = mcp.use(scripted("mute", { timeoutMs: 400 }));
    expect((await whileHealthy(failureOf(server))).message).toMatch(
      /mute could not be reached: no answer within 0.4 s/,
    );
    expect(server.state().status).toBe("failed");
  });

  it("an MCP call that is never answered is cancelled on the server and ends", async () => {
    await using folder = await tempFolder({ log: "" });
    const server = mcp.use(scripted("hangs", { timeoutMs: 4_000, argument: folder.at("log") }));
    const failure = await whileHealthy(failureOf(server));
    expect(failure).toMatchObject({ code: "timeout", message: expect.stringContaining("hangs was silent for 4 s") });
    await expect.poll(() => folder.read("log")).toContain("notifications/cancelled");
    expect(server.state().status).toBe("connected");
  });

  it("an MCP call that is stopped ends at once, and the server is notified", async () => {
    await using folder = await tempFolder({ log: "" });
    const server = mcp.use(scripted("hangs", { timeoutMs: 60_000, argument: folder.at("log") }));
    const [tool] = await toolsOf(server);
    const stop = new AbortController();
    const call = run(tool, {}, { signal: stop.signal });
    await expect.poll(() => folder.read("log")).toContain("tools/call");
    const started = performance.now();
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    expect(performance.now() - started).toBeLessThan(HANG_MS);
    await expect.poll(() => folder.read("log")).toContain("notifications/cancelled");
  });

  it.each([
    ["flood", /wrote a line longer than 4 MiB/],
    ["line", /wrote a line longer than 4 MiB/],
    ["noise", /wrote more than 1 MiB that is no JSON-RPC message/],
    ["notifies", /sent more than 5000 unrequested messages/],
    ["dies", /ended with exit code 3.*out of cheese/s],
  ])("an MCP server that answers a call with %s fails only that call", async (mode, words) => {
    const before = process.memoryUsage().rss;
    const failure = await whileHealthy(failureOf(mcp.use(scripted(mode))));
    expect(failure.name).toBe("ToolError");
    expect(failure.message).toMatch(words);
    expect(failure.message).not.toContain("\u001b");
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  it.each(["garbage", "twice"])("an MCP server's odd but valid reply is understood: %s", async (mode) => {
    expect(await whileHealthy(callFirst(mcp.use(scripted(mode))))).toMatch(/hello$|after the garbage$/);
  });

  it("an MCP server that answers unknown calls, or with nothing, cannot answer another call", async () => {
    const server = mcp.use(scripted("lies", { timeoutMs: 1000 }));
    const outcome = await whileHealthy(callFirst(server).catch((error: Error) => error.message));
    expect(outcome).toMatch(/hello$|refused the call or failed|was silent/);
    expect(outcome).not.toContain("for another call");
  });

  it("an MCP server that lists ten thousand tools, or pages without end, is cut with a notice", async () => {
    const notices: string[] = [];
    const user = { onNotice: (_name: string, notice: string) => notices.push(notice) };
    expect(await whileHealthy(mcp.use(scripted("many"), user).definitions(never()))).toHaveLength(256);
    expect(await whileHealthy(mcp.use(scripted("endless"), user).definitions(never()))).toHaveLength(1);
    expect(notices).toEqual(
      expect.arrayContaining([
        expect.stringContaining("more than 256 tools"),
        expect.stringContaining("more than 20 pages"),
      ]),
    );
  });

  it("F01: an MCP tool's endless description with hidden characters is cut and made visible", async () => {
    const [tool] = await toolsOf(mcp.use(scripted("giant")));
    expect(tool?.description.length).toBeLessThanOrEqual(2000);
    expect(tool?.description).toMatch(/^Read the manual\.<U\+E0049><U\+E0047> <U\+202E>evil x/);
    expect(tool?.description).not.toMatch(/\u001b|owned/);
  });

  it("an MCP server's schemas that are too large are dropped and named, the other tools are used", async () => {
    const notices: string[] = [];
    const server = mcp.use(scripted("bombs"), { onNotice: (_name, notice) => notices.push(notice) });
    expect((await toolsOf(server)).map(({ name }) => name)).toEqual(["bombs-cycle", "bombs-echo"]);
    expect(notices.map((notice) => notice.replace("MCP server bombs: ", ""))).toEqual([
      "the tool deep is left out: its schema is nested deeper than 32 levels.",
      "the tool wide is left out: its schema is larger than 32 KiB.",
      "the tool list is left out: its schema does not describe an object.",
      "the tool missing is left out: its schema does not describe an object.",
      "the tool proto is left out: its schema has a member called __proto__.",
      "a tool without a name is left out.",
    ]);
  });

  it("an MCP server cannot ask a user or a model that was not offered", async () => {
    const reply = await whileHealthy(callFirst(mcp.use(scripted("asks"))));
    expect(JSON.parse(reply.slice(reply.indexOf("[")))).toEqual(["Method not found", "Method not found"]);
  });
});

describe("requests of a server during a call", () => {
  it("an MCP server's requests during a call reach the caller, bounded, and pause the call's timeout", async () => {
    const asked: unknown[] = [];
    const server = mcp.use(scripted("asks", { timeoutMs: 3_000 }), {
      elicit: async (request) => {
        asked.push(request);
        await new Promise((resolve) => setTimeout(resolve, 3_500));
        return { action: "accept", content: { name: "Ada" } };
      },
      sample: async (request) => {
        asked.push(request);
        return { model: "m", text: "hello back" };
      },
    });
    const reply = await callFirst(server);
    expect(JSON.parse(reply.slice(reply.indexOf("[")))).toEqual([
      { action: "accept", content: { name: "Ada" } },
      { model: "m", role: "assistant", content: { type: "text", text: "hello back" } },
    ]);
    const shared = { serverName: "asks", toolCallId: "call-1" };
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    expect(asked).toEqual([
      { ...shared, mode: "form", message: "Which?", requestedSchema },
      { ...shared, messages: [{ role: "user", text: "hi" }], maxTokens: 16_384, modelHints: [] },
    ]);
  });

  it("an MCP server's request is refused when calls of several sessions are in progress", async () => {
    const config = scripted("asks", { name: "shared" });
    const user = (): object => ({
      elicit: async () => ({ action: "decline" }),
      sample: async () => ({ model: "m", text: "" }),
    });
    const replies = await Promise.all([callFirst(mcp.use(config, user())), callFirst(mcp.use(config, user()))]);
    expect(replies.join()).toContain("cannot be assigned to one");
  });
});
