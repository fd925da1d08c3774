// The floor: the least a Node program can do for the same workload. It asks, parses the stream, reads the files, runs the
// commands and holds the conversations it is told to, and prints the answer. It has no prompt, permissions, log or limits.
// Nobody would use it: it says how much of a figure is Node, the loopback and the mock.
//
//   FLOOR_BASE_URL=… FLOOR_WIRE=completions node floor-agent.mjs "<prompt>"
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const parametersOf = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
const tools = [
  { name: "view", description: "Show a file", parameters: parametersOf("path") },
  { name: "bash", description: "Run a command", parameters: parametersOf("command") },
  { name: "task", description: "Let another do it", parameters: parametersOf("prompt") },
];

const wires = {
  completions: {
    path: "/chat/completions",
    body: (messages) => ({ messages, tools: tools.map((tool) => ({ type: "function", function: tool })) }),
    read({ choices: [choice] }, reply) {
      if (choice?.delta.content) reply.text += choice.delta.content;
      for (const { index, id, function: given } of choice?.delta.tool_calls ?? []) {
        reply.calls[index] ??= { id, name: given.name, arguments: "" };
        reply.calls[index].arguments += given.arguments;
      }
    },
    turn: (calls, results) => [
      {
        role: "assistant",
        content: null,
        tool_calls: calls.map(({ id, ...call }) => ({ id, type: "function", function: call })),
      },
      ...calls.map(({ id }, index) => ({ role: "tool", tool_call_id: id, content: results[index] })),
    ],
  },
  responses: {
    path: "/responses",
    body: (input) => ({ input, tools: tools.map((tool) => ({ type: "function", ...tool })) }),
    read({ type, delta, item }, reply) {
      if (type === "response.output_text.delta") reply.text += delta;
      else if (type === "response.output_item.done" && item.type === "function_call") {
        reply.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
      }
    },
    turn: (calls, results) => [
      ...calls.map(({ id, ...call }) => ({ type: "function_call", call_id: id, ...call })),
      ...calls.map(({ id }, index) => ({ type: "function_call_output", call_id: id, output: results[index] })),
    ],
  },
  anthropic: {
    path: "/messages",
    body: (messages) => ({
      messages,
      max_tokens: 8192,
      tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
    }),
    read({ type, index, delta, content_block: block }, reply) {
      if (type === "content_block_start" && block.type === "tool_use") {
        reply.calls[index] = { id: block.id, name: block.name, arguments: "" };
      } else if (delta?.type === "text_delta") reply.text += delta.text;
      else if (delta?.type === "input_json_delta") reply.calls[index].arguments += delta.partial_json;
    },
    turn: (calls, results) => [
      {
        role: "assistant",
        content: calls.map(({ id, name, ...call }) => ({
          type: "tool_use",
          id,
          name,
          input: JSON.parse(call.arguments),
        })),
      },
      {
        role: "user",
        content: calls.map(({ id }, index) => ({ type: "tool_result", tool_use_id: id, content: results[index] })),
      },
    ],
  },
};

const execute = promisify(execFile);
const wire = wires[process.env.FLOOR_WIRE ?? "completions"];
const answer = await converse(process.argv[2]);
process.stdout.write(`${answer}\n`, () => process.exit(0));

async function converse(prompt) {
  const messages = [{ role: "user", content: prompt }];
  for (;;) {
    const { text, calls } = await ask(messages);
    if (calls.length === 0) return text;
    messages.push(...wire.turn(calls, await Promise.all(calls.map(run))));
  }
}

async function run({ name, arguments: text }) {
  const { path, prompt, command } = JSON.parse(text);
  if (name === "bash") return (await execute("bash", ["-c", command])).stdout;
  return name === "task" ? converse(prompt) : readFile(path, "utf8");
}

async function ask(messages) {
  const response = await fetch(process.env.FLOOR_BASE_URL + wire.path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer mock" },
    body: JSON.stringify({ model: "mock-model", stream: true, ...wire.body(messages) }),
  });
  const reply = { text: "", calls: [] };
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body) {
    rest += decoder.decode(chunk, { stream: true });
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const json = event.slice(event.indexOf("data: ") + 6);
      if (json !== "[DONE]") wire.read(JSON.parse(json), reply);
    }
  }
  return reply;
}
