/** `--share <file>`: writes the session to a file, for users (Markdown) or programs (JSON lines). */
import { resolve } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { clip, fenced, plural } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { Runtime } from "../runtime/runtime.ts";

const MAX_RESULT_CHARACTERS = 2000;
const MAX_ARGUMENT_CHARACTERS = 500;

/** Writes the log of a closed session. Events contain no secrets: they are redacted when they are created. */
export async function shareSession(store: Runtime["store"], sessionId: string, file: string): Promise<void> {
  const events: SessionEvent[] = [];
  for await (const event of store.events(sessionId)) events.push(event);
  const text = /\.jsonl?$/i.test(file)
    ? events.map((event) => `${JSON.stringify(event)}\n`).join("")
    : markdownOf(sessionId, events);
  await replaceFile(nodeDisk, resolve(file), text).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("failed", `The session could not be written to ${file}: ${why}`, { cause });
  });
}

function markdownOf(sessionId: string, events: readonly SessionEvent[]): string {
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
      return result.trim() === "" ? [] : [fenced(clip(result, MAX_RESULT_CHARACTERS))];
    }
    case "session.error":
      return [`**Error:** ${event.data.message}`];
    default:
      return [];
  }
}
