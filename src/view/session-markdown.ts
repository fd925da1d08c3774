/** A session as a Markdown document for users. Events contain no secrets: they are redacted when they are created. */
import { clip, fenceText, plural } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";

const MAX_RESULT_CHARACTERS = 2000;
const MAX_ARGUMENT_CHARACTERS = 500;

/** Long results and arguments are cut. */
export function sessionMarkdown(sessionId: string, events: readonly SessionEvent[]): string {
  const turns = events.filter(({ type }) => type === "assistant.turn_start").length;
  const head = [`# Session ${sessionId}`, `${events[0]?.timestamp ?? ""} · ${plural(turns, "model call")}`];
  return `${[...head, ...events.flatMap(section)].join("\n\n")}\n`;
}

function section(event: SessionEvent): string[] {
  const who = event.agentId === undefined ? "" : ` (${event.agentId})`;
  switch (event.type) {
    case "user.message":
      return [`## User${who}`, event.data.content];
    case "assistant.message":
      return event.data.content === "" ? [] : [`## Assistant${who}`, event.data.content];
    case "tool.execution_start": {
      const given = clip(JSON.stringify(event.data.arguments ?? {}), MAX_ARGUMENT_CHARACTERS);
      return [`**${event.data.toolName}**${who} \`${given.replaceAll("`", "'")}\``];
    }
    case "tool.execution_complete": {
      const result = event.data.result?.content ?? event.data.error?.message ?? "";
      return result.trim() === "" ? [] : [fenceText(clip(result, MAX_RESULT_CHARACTERS))];
    }
    case "session.error":
      return [`**Error:** ${event.data.message}`];
    default:
      return [];
  }
}
