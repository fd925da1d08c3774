/** Longer texts about the session: its changes, and its transcript as a file. */
import { resolve } from "node:path";
import { nodeDisk, writeNewFile } from "../../lib/node/disk.ts";
import { plural } from "../../lib/text.ts";
import { sessionMarkdown } from "../../view/session-markdown.ts";
import type { Host } from "../host.ts";
import { Pager } from "../overlays/pager.ts";
import { safe } from "../screen/safe.ts";
import { copyText } from "./clipboard.ts";

interface Change {
  readonly path: string;
  readonly changeType: string;
  readonly diff?: string;
}

export async function showDiff(app: Host): Promise<void> {
  const { changes } = await app.call<{ changes: readonly Change[] }>("session.workspaces.diff", { mode: "session" });
  if (changes.length === 0) {
    app.hint("the session changed no files");
    return;
  }
  const { style } = app;
  const lines = changes.flatMap(({ path, changeType, diff = "" }) => [
    style.bold(safe(`${changeType} ${path}`)),
    ...safe(diff)
      .split("\n")
      .map((line) => {
        if (line.startsWith("+")) return style.green(line);
        return line.startsWith("-") ? style.red(line) : line;
      }),
  ]);
  app.openOverlay(new Pager({ title: `${plural(changes.length, "file")} changed`, style, lines: () => lines }));
}

/** Writes Markdown, or the events for a name that ends in `.jsonl`. Fails for a file that exists, so that nothing is overwritten. */
export async function exportTranscript(app: Host, args: string): Promise<void> {
  const { session } = app;
  if (!session) return;
  const path = resolve(app.options.cwd, args || `troupe-${session.id.slice(0, 8)}.md`);
  const events = await session.events();
  const text = path.endsWith(".jsonl")
    ? events.map((event) => `${JSON.stringify(event)}\n`).join("")
    : sessionMarkdown(session.id, events);
  await writeNewFile(nodeDisk, path, [Buffer.from(text)]).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    throw new Error(`${path} exists already. Name another file: /export notes.md.`);
  });
  app.commit([app.style.dim(`written to ${safe(path)}`)]);
}

const CODE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n([\s\S]*?)^ {0,3}\1[ \t]*$/gm;

/** Copies the last answer as the model wrote it, or the last block of code in it. */
export async function copyAnswer(app: Host, args: string): Promise<void> {
  const answer = (await app.session?.events())?.findLast(
    (event) => event.type === "assistant.message" && event.agentId === undefined && event.data.content.trim() !== "",
  );
  const whole = answer?.type === "assistant.message" ? answer.data.content.trim() : "";
  const text = args === "code" ? [...whole.matchAll(CODE)].at(-1)?.[2] : whole;
  if (!text) {
    app.hint(args === "code" ? "the last answer has no block of code" : "there is no answer yet");
    return;
  }
  const { environment, tty } = app.options;
  app.hint(await copyText(text, { environment, write: (bytes) => tty.write(bytes) }));
}
