/** An MCP server whose one tool is only called as a task: `node task-server.mjs <log> <steer|plain>`. */
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [log, kind] = process.argv.slice(2);
const reply = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
const fail = (id) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -1, message: "lost" } })}\n`);
const tool = {
  name: "dig",
  description: "Digs",
  inputSchema: { type: "object" },
  execution: { taskSupport: "required" },
};
const tasks = { cancel: {}, requests: { tools: { call: {} } }, ...(kind === "steer" && { steer: {} }) };
let asked = 0;
let wanted = "";
let token;

/** How far it is, told by its own way and not in an answer. */
const report = (progress) =>
  process.stdout.write(
    `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: token, progress, total: 7, message: "metres" } })}\n`,
  );

const working = { taskId: "t", status: "working", statusMessage: "3 of 7 metres", pollInterval: 100, ttl: null };
const answers = {
  initialize: (id) =>
    reply(id, {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {}, tasks },
      serverInfo: { name: "dig", version: "1" },
    }),
  "tools/list": (id) => reply(id, { tools: [tool] }),
  "tools/call": (id, { arguments: given, _meta }) => {
    wanted = given.how;
    token = _meta?.progressToken;
    reply(id, { task: working });
  },
  "tasks/get": (id) => {
    asked++;
    report(asked);
    // The first answer gets lost; one that is told to dig for ever does.
    if (asked === 1) fail(id);
    else reply(id, wanted === "for ever" || asked < 4 ? working : { ...working, status: "completed" });
  },
  "tasks/result": (id) => reply(id, { content: [{ type: "text", text: `dug ${wanted}` }] }),
  "tasks/cancel": (id) => reply(id, { ...working, status: "cancelled" }),
  "tasks/steer": (id) => reply(id, {}),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  appendFileSync(log, `${method} ${params?.message ?? ""}\n`);
  if (id !== undefined) (answers[method] ?? fail)(id, params);
});
