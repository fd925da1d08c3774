import type { SessionEvent } from "../protocol/event.ts";

const text = (value: string): object => ({ type: "text", text: value });

const KINDS: Readonly<Record<string, string>> = {
  view: "read",
  glob: "search",
  grep: "search",
  create: "edit",
  edit: "edit",
  apply_patch: "edit",
  bash: "execute",
  web_fetch: "fetch",
  task: "think",
};

/**
 * What an editor is told of an event, if anything. Words come as they arrive; of what is replayed they are whole. Agents that
 * work for the main one are calls of `task`, and their own words are not the answer.
 */
export function updateOf(event: SessionEvent, how: "live" | "replay"): object | undefined {
  if (event.agentId !== undefined) return undefined;
  switch (event.type) {
    case "assistant.message_delta":
      return { sessionUpdate: "agent_message_chunk", content: text(event.data.deltaContent) };
    case "assistant.reasoning_delta":
      return { sessionUpdate: "agent_thought_chunk", content: text(event.data.deltaContent) };
    case "assistant.message":
      if (how === "live" || event.data.content === "") return undefined;
      return { sessionUpdate: "agent_message_chunk", content: text(event.data.content) };
    case "user.message":
      if (how === "live" || event.data.source !== undefined) return undefined;
      return { sessionUpdate: "user_message_chunk", content: text(event.data.content) };
    case "tool.execution_start": {
      const { toolCallId, toolName, arguments: rawInput } = event.data;
      const kind = KINDS[toolName] ?? "other";
      const title = titleOf(toolName, rawInput);
      return { sessionUpdate: "tool_call", toolCallId, title, kind, status: "in_progress", rawInput };
    }
    case "tool.execution_complete": {
      const { toolCallId, success, result, error } = event.data;
      const said = result?.content ?? error?.message ?? "";
      return {
        sessionUpdate: "tool_call_update",
        toolCallId,
        status: success ? "completed" : "failed",
        content: [{ type: "content", content: text(said) }],
      };
    }
    default:
      return undefined;
  }
}

function titleOf(toolName: string, input: unknown): string {
  const given = typeof input === "object" && input !== null ? (input as Readonly<Record<string, unknown>>) : {};
  const what = [given.path, given.command, given.pattern, given.url, given.description].find(
    (value) => typeof value === "string" && value !== "",
  );
  return what === undefined ? toolName : `${toolName} ${what}`;
}
