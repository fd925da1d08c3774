/** `--share <file>`: writes the session to a file, for users (Markdown) or programs (JSON lines). */
import { resolve } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { sessionMarkdown } from "../view/session-markdown.ts";

/** Writes the log of a closed session. Events contain no secrets: they are redacted when they are created. */
export async function shareSession(store: Runtime["store"], sessionId: string, file: string): Promise<void> {
  const events: SessionEvent[] = [];
  for await (const event of store.events(sessionId)) events.push(event);
  const text = /\.jsonl?$/i.test(file)
    ? events.map((event) => `${JSON.stringify(event)}\n`).join("")
    : sessionMarkdown(sessionId, events);
  await replaceFile(nodeDisk, resolve(file), text).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("failed", `The session could not be written to ${file}: ${why}`, { cause });
  });
}
