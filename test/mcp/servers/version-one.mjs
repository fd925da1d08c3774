/** A server of the first SDK: elicitation, sampling, roots, resources, and a tool that is only called as a task. */

import { appendFileSync } from "node:fs";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { UrlElicitationRequiredError } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";

const taskStore = new InMemoryTaskStore();
const server = new McpServer(
  { name: "version-one", version: "1.0.0" },
  { capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }, taskStore },
);
const text = (words) => ({ content: [{ type: "text", text: words }] });

server.registerTool("ask", { description: "Asks the person" }, async () => {
  const answer = await server.server.elicitInput({
    message: "Your name?",
    requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  });
  return text(JSON.stringify(answer));
});
server.registerTool("prefilled", { description: "Asks the person, with defaults" }, async () => {
  const answer = await server.server.elicitInput({
    message: "Which part?",
    requestedSchema: {
      type: "object",
      properties: {
        part: { type: "string", default: "Hamlet" },
        acts: { type: "integer", default: 5 },
        verse: { type: "boolean", default: true },
        name: { type: "string" },
      },
    },
  });
  return text(JSON.stringify(answer));
});
let visits = 0;
server.registerTool("visit", { description: "Wants an address to be visited first" }, async () => {
  if (visits++ === 0) {
    const elicitation = { mode: "url", message: "Sign in", url: "https://example.com/in", elicitationId: "e-1" };
    throw new UrlElicitationRequiredError([elicitation]);
  }
  return text("welcome");
});
server.registerTool("capabilities", { description: "Says what the client offers, and in which process" }, async () =>
  text(JSON.stringify({ ...server.server.getClientCapabilities(), pid: process.pid })),
);
server.registerTool("sample", { description: "Asks a model" }, async () => {
  const message = { role: "user", content: { type: "text", text: "Say hi" } };
  const answer = await server.server.createMessage({ messages: [message], maxTokens: 10 });
  return text(answer.content.text);
});
server.registerTool("roots", { description: "Lists roots" }, async () =>
  text(JSON.stringify((await server.server.listRoots()).roots)),
);
server.registerResource("greeting", "memory://greeting", { description: "A greeting" }, async (uri) => ({
  contents: [{ uri: uri.href, text: "hello \u001b[1mreader" }],
}));
server.experimental.tasks.registerToolTask(
  "slow",
  { description: "Takes its time", inputSchema: { ms: z.number() }, execution: { taskSupport: "required" } },
  {
    async createTask({ ms }, { taskStore: store, taskRequestedTtl }) {
      const task = await store.createTask({ ttl: taskRequestedTtl, pollInterval: 50 });
      const timer = setTimeout(() => store.storeTaskResult(task.taskId, "completed", text(`took ${ms}`)), ms);
      void watch(store, task.taskId, timer);
      return { task };
    },
    getTask: (_given, { taskId, taskStore: store }) => store.getTask(taskId),
    getTaskResult: (_given, { taskId, taskStore: store }) => store.getTaskResult(taskId),
  },
);

async function watch(store, taskId, timer) {
  for (;;) {
    const task = await store.getTask(taskId);
    if (task?.status === "cancelled") appendFileSync(process.argv[2], "task cancelled\n");
    if (task?.status !== "working") return clearTimeout(timer);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

await server.connect(new StdioServerTransport());
