// The three wires the mock model speaks: how a request is read, and how an answer is streamed.
// An answer is `{ id, model, calls: [{ name, arguments }] }` or `{ id, model, deltas }` (pieces of text; chat
// completions alone also play `{ thought }`).

/** What the mock must know of a request: the prompt, and the texts of the tool results so far. */
export const wires = {
  completions: {
    path: "/chat/completions",
    read({ messages = [] }) {
      return {
        prompt: messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content)),
        results: messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content)),
      };
    },
    *stream({ id, model, calls, deltas }) {
      const head = { id, object: "chat.completion.chunk", created: 0, model };
      const chunk = (delta, finish_reason = null) => data({ ...head, choices: [{ index: 0, delta, finish_reason }] });
      yield chunk({ role: "assistant", content: "" });
      for (const [index, call] of (calls ?? []).entries()) {
        yield chunk({ tool_calls: [{ index, id: `call_${id}_${index}`, type: "function", function: call }] });
      }
      for (const delta of deltas ?? []) {
        yield chunk(typeof delta === "string" ? { content: delta } : { reasoning_content: delta.thought });
      }
      yield chunk({}, calls ? "tool_calls" : "stop");
      yield data({ ...head, choices: [], usage: { prompt_tokens: 1000, completion_tokens: 20, total_tokens: 1020 } });
      yield "data: [DONE]\n\n";
    },
  },

  responses: {
    path: "/responses",
    read({ input = [] }) {
      const items = typeof input === "string" ? [{ role: "user", content: input }] : input;
      return {
        prompt: items.filter(({ role }) => role === "user").map(({ content }) => textOf(content)),
        results: items.filter(({ type }) => type === "function_call_output").map(({ output }) => textOf(output)),
      };
    },
    *stream({ id, model, calls, deltas }) {
      let sequence_number = 0;
      const event = (type, fields) => named(type, { sequence_number: sequence_number++, ...fields });
      const response = { id, object: "response", created_at: 0, status: "in_progress", model, output: [] };
      const usage = { input_tokens: 1000, output_tokens: 20, total_tokens: 1020 };
      const output = [];
      yield event("response.created", { response });
      for (const [output_index, call] of (calls ?? []).entries()) {
        const item_id = `fc_${id}_${output_index}`;
        const item = { type: "function_call", id: item_id, call_id: `call_${id}_${output_index}`, ...call };
        const opened = { ...item, arguments: "", status: "in_progress" };
        yield event("response.output_item.added", { output_index, item: opened });
        yield event("response.function_call_arguments.delta", { output_index, item_id, delta: call.arguments });
        output.push({ ...item, status: "completed" });
        yield event("response.output_item.done", { output_index, item: output[output_index] });
      }
      if (!calls) {
        const output_index = 0;
        const item = { type: "message", id: `msg_${id}`, role: "assistant", status: "in_progress", content: [] };
        const place = { output_index, content_index: 0, item_id: item.id };
        yield event("response.output_item.added", { output_index, item });
        let text = "";
        for (const delta of deltas) {
          text += delta;
          yield event("response.output_text.delta", { ...place, delta });
        }
        output.push({ ...item, status: "completed", content: [{ type: "output_text", text, annotations: [] }] });
        yield event("response.output_item.done", { output_index, item: output[0] });
      }
      yield event("response.completed", { response: { ...response, status: "completed", output, usage } });
    },
  },

  anthropic: {
    path: "/messages",
    read({ messages = [] }) {
      const parts = messages.filter(({ role }) => role === "user").flatMap(({ content }) => content);
      return {
        prompt: parts.filter((part) => typeof part === "string" || part.type === "text").map(textOf),
        results: parts.filter(({ type }) => type === "tool_result").map(({ content }) => textOf(content)),
      };
    },
    *stream({ id, model, calls, deltas }) {
      const usage = { input_tokens: 1000, output_tokens: 1 };
      const message = { id, type: "message", role: "assistant", model, content: [], stop_reason: null, usage };
      yield named("message_start", { message });
      for (const [index, call] of (calls ?? []).entries()) {
        const content_block = { type: "tool_use", id: `toolu_${id}_${index}`, name: call.name, input: {} };
        const delta = { type: "input_json_delta", partial_json: call.arguments };
        yield named("content_block_start", { index, content_block });
        yield named("content_block_delta", { index, delta });
        yield named("content_block_stop", { index });
      }
      if (!calls) {
        const index = 0;
        yield named("content_block_start", { index, content_block: { type: "text", text: "" } });
        for (const text of deltas) yield named("content_block_delta", { index, delta: { type: "text_delta", text } });
        yield named("content_block_stop", { index });
      }
      const delta = { stop_reason: calls ? "tool_use" : "end_turn", stop_sequence: null };
      yield named("message_delta", { delta, usage: { output_tokens: 20 } });
      yield named("message_stop", {});
    },
  },
};

const data = (value) => `data: ${JSON.stringify(value)}\n\n`;
const named = (type, fields) => `event: ${type}\n${data({ type, ...fields })}`;

function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).join("\n");
  return content?.text ?? content?.content ?? "";
}
