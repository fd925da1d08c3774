// The floor: the least a Node program can do for the same workload. It asks, parses the stream, reads the files it is
// told to and prints the answer; it has no prompt, no permissions, no log and no limits. Nobody would use it: it says
// how much of a figure is Node, the loopback and the mock.
//
//   FLOOR_BASE_URL=… FLOOR_WIRE=completions node floor-agent.mjs "<prompt>"
import { readFile } from "node:fs/promises";

const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const tool = { name: "view", description: "Show a file" };

const wires = {
  completions: {
    path: "/chat/completions",
    body: (messages) => ({ messages, tools: [{ type: "function", function: { ...tool, parameters } }] }),
    read({ choices: [choice] }, reply) {
      if (choice?.delta.content) reply.text += choice.delta.content;
      for (const { id, function: given } of choice?.delta.tool_calls ?? []) {
        reply.call ??= { id, name: given.name, arguments: "" };
        reply.call.arguments += given.arguments;
      }
    },
    turn: ({ id, ...call }, content) => [
      { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: call }] },
      { role: "tool", tool_call_id: id, content },
    ],
  },
  responses: {
    path: "/responses",
    body: (input) => ({ input, tools: [{ type: "function", ...tool, parameters }] }),
    read({ type, delta, item }, reply) {
      if (type === "response.output_text.delta") reply.text += delta;
      else if (type === "response.output_item.done" && item.type === "function_call") {
        reply.call = { id: item.call_id, name: item.name, arguments: item.arguments };
      }
    },
    turn: ({ id, ...call }, output) => [
      { type: "function_call", call_id: id, ...call },
      { type: "function_call_output", call_id: id, output },
    ],
  },
  anthropic: {
    path: "/messages",
    body: (messages) => ({ messages, max_tokens: 8192, tools: [{ ...tool, input_schema: parameters }] }),
    read({ type, delta, content_block: block }, reply) {
      if (type === "content_block_start" && block.type === "tool_use") {
        reply.call = { id: block.id, name: block.name, arguments: "" };
      } else if (delta?.type === "text_delta") reply.text += delta.text;
      else if (delta?.type === "input_json_delta") reply.call.arguments += delta.partial_json;
    },
    turn: ({ id, name, ...call }, content) => [
      { role: "assistant", content: [{ type: "tool_use", id, name, input: JSON.parse(call.arguments) }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] },
    ],
  },
};

const wire = wires[process.env.FLOOR_WIRE ?? "completions"];
const messages = [{ role: "user", content: process.argv[2] }];
let reply = await ask();
while (reply.call) {
  const { path } = JSON.parse(reply.call.arguments);
  messages.push(...wire.turn(reply.call, await readFile(path, "utf8")));
  reply = await ask();
}
process.stdout.write(`${reply.text}\n`, () => process.exit(0));

async function ask() {
  const response = await fetch(process.env.FLOOR_BASE_URL + wire.path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer mock" },
    body: JSON.stringify({ model: "mock-model", stream: true, ...wire.body(messages) }),
  });
  const answer = { text: "", call: undefined };
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body) {
    rest += decoder.decode(chunk, { stream: true });
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const json = event.slice(event.indexOf("data: ") + 6);
      if (json !== "[DONE]") wire.read(JSON.parse(json), answer);
    }
  }
  return answer;
}
