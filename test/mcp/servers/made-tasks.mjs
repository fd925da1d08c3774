/** A server of the second SDK that makes tasks of calls by itself (2026-07-28): `node made-tasks.mjs <log>`. */
import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const EXTENSION = "io.modelcontextprotocol/tasks";
const log = (line) => appendFileSync(process.argv[2], `${line}\n`);
const tasks = new Map();

function newServer() {
  const server = new McpServer(
    { name: "made-tasks", version: "1.0.0" },
    { capabilities: { tools: {}, extensions: { [EXTENSION]: {} } } },
  );
  const { server: protocol } = server;
  protocol.setRequestHandler("tools/list", () => ({
    tools: [{ name: "dig", description: "Digs", inputSchema: { type: "object" } }],
  }));
  protocol.setRequestHandler("tools/call", ({ params }) => {
    const { how } = params.arguments;
    log(`tools/call ${how}`);
    if (how === "at once") return { content: [{ type: "text", text: "dug at once" }] };
    tasks.set("t", { how, polls: 0, answers: {} });
    return { resultType: "task", ...state("working") };
  });
  protocol.setRequestHandler("tasks/get", { params: z.object({ taskId: z.string() }) }, ({ taskId }) => {
    const task = tasks.get(taskId);
    task.polls++;
    log(`tasks/get ${taskId}`);
    if (task.how === "for ever") return state("working");
    if (task.how === "badly") return { ...state("failed"), error: { code: -1, message: "the spade broke" } };
    if (task.how === "asking" && task.answers.q === undefined) {
      const params = {
        mode: "form",
        message: "How deep?",
        requestedSchema: { type: "object", properties: { metres: { type: "number" } } },
      };
      return { ...state("input_required"), inputRequests: { q: { method: "elicitation/create", params } } };
    }
    if (task.polls < 3) return state("working");
    const said = task.answers.q ? ` ${JSON.stringify(task.answers.q)}` : "";
    return { ...state("completed"), result: { content: [{ type: "text", text: `dug ${task.how}${said}` }] } };
  });
  protocol.setRequestHandler("tasks/update", { params: z.object({ taskId: z.string() }) }, ({ taskId }, { mcpReq }) => {
    log("tasks/update");
    Object.assign(tasks.get(taskId).answers, mcpReq.inputResponses);
    return {};
  });
  protocol.setRequestHandler("tasks/cancel", { params: z.object({ taskId: z.string() }) }, ({ taskId }) => {
    log(`tasks/cancel ${taskId}`);
    return {};
  });
  return server;
}

const state = (status) => ({
  taskId: "t",
  status,
  statusMessage: `3 of 7 metres, ${status}`,
  createdAt: "2026-08-01T00:00:00Z",
  lastUpdatedAt: "2026-08-01T00:00:00Z",
  ttlMs: null,
  pollIntervalMs: 100,
});

serveStdio(newServer);
