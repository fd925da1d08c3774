import type { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { callAsTask, type McpTaskStatus } from "../../src/tools/mcp/tasks/call-as-task.ts";

interface Sent {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

/** The library's client, over a server that answers as told. */
function clientOf(answer: (sent: Sent, count: number) => unknown, capabilities: object = {}) {
  const sent: Sent[] = [];
  const client = {
    getServerCapabilities: () => capabilities,
    async request(message: Sent) {
      sent.push(message);
      return answer(message, sent.filter(({ method }) => method === message.method).length);
    },
  };
  return { client: client as unknown as Client, sent };
}

const task = (status: McpTaskStatus["status"]) => ({ taskId: "t", status, pollInterval: 1 });
const call = (client: Client, onStatus: (status: McpTaskStatus) => void = () => undefined) =>
  callAsTask({
    client,
    params: { name: "slow", arguments: {} },
    timeoutMs: 1_000,
    ttlMs: 60_000,
    signal: new AbortController().signal,
    messages: { watch: () => ({ token: "t", stop: () => undefined }) },
    onStatus,
  });

const lose = (): never => {
  throw new Error("lost");
};

describe("a call that is made as a task", () => {
  it("ORC-73: an MCP task requests a lost answer again, and uses only the result", async () => {
    const { client, sent } = clientOf(({ method }, count) => {
      if (method === "tools/call") return { task: task("working") };
      if (method === "tasks/result") return { content: [] };
      return count <= 2 ? lose() : task("completed");
    });
    expect(await call(client)).toEqual({ content: [] });
    expect(sent.map(({ method }) => method)).toEqual([
      "tools/call",
      "tasks/get",
      "tasks/get",
      "tasks/get",
      "tasks/result",
    ]);
  });

  it("an MCP task ends when its server is gone for good", async () => {
    const { client, sent } = clientOf(({ method }) => (method === "tools/call" ? { task: task("working") } : lose()));
    await expect(call(client)).rejects.toThrow("lost");
    expect(sent.filter(({ method }) => method === "tasks/get")).toHaveLength(3);
  });

  it.each([
    [
      "takes messages",
      { tasks: { steer: {} } },
      [{ method: "tasks/steer", params: { taskId: "t", message: "faster" } }],
    ],
    ["takes none", { tasks: {} }, []],
  ])("ORC-75: an MCP task on a server that %s", async (_, capabilities, expected) => {
    const { client, sent } = clientOf(({ method }) => {
      if (method === "tools/call") return { task: task("working") };
      return method === "tasks/get" ? task("completed") : { content: [] };
    }, capabilities);
    await call(client, ({ steer }) => void steer?.("faster"));
    expect(sent.filter(({ method }) => method === "tasks/steer")).toEqual(expected);
  });
});
