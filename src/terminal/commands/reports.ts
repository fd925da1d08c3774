/** Longer texts about the session: its changes, and its transcript as a file. */
import { resolve } from "node:path";
import { nodeDisk, writeNewFile } from "../../lib/node/disk.ts";
import { plural } from "../../lib/text.ts";
import type { Host } from "../host.ts";
import { Pager } from "../overlays/pager.ts";
import { safe } from "../screen/safe.ts";
import { plainStyle } from "../screen/style.ts";
import { blockLines } from "../transcript/block-lines.ts";
import { transcriptOf } from "./overlays.ts";

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

/** Fails for a file that exists, so that nothing is overwritten. */
export async function exportTranscript(app: Host, args: string): Promise<void> {
  const { session } = app;
  if (!session) return;
  const path = resolve(app.options.cwd, args || `troupe-${session.id.slice(0, 8)}.md`);
  const events = await session.events();
  const lines = transcriptOf(events).flatMap((block) => blockLines(block, { style: plainStyle, isFull: true }));
  await writeNewFile(nodeDisk, path, [Buffer.from(`${lines.join("\n")}\n`)]);
  app.commit([app.style.dim(`written to ${safe(path)}`)]);
}
