import { isAbsolute, relative, sep } from "node:path";
import { firstCharacters } from "../../lib/text.ts";

const MAX_DIFF_CHARACTERS = 20_000;
const TIMEOUT_MS = 500;
const MAX_EDIT_LENGTH = 20_000;

/** Returns a bounded unified diff for display. Null means a missing file. */
export async function fileDiff(change: {
  path: string;
  cwd: string;
  before: Uint8Array | null;
  after: Uint8Array | null;
  /** The source path, for a move. */
  movedFrom?: string;
}): Promise<string> {
  const { before, after, cwd } = change;
  const name = shownPath(change.path, cwd);
  const oldName = before === null ? "/dev/null" : `a/${change.movedFrom ? shownPath(change.movedFrom, cwd) : name}`;
  const newName = after === null ? "/dev/null" : `b/${name}`;
  const header = `--- ${oldName}\n+++ ${newName}\n`;
  const oldText = textOf(before);
  const newText = textOf(after);
  if (oldText === undefined || newText === undefined) {
    return `${header}[binary content: ${before?.length ?? 0} bytes before, ${after?.length ?? 0} bytes after]\n`;
  }
  const { structuredPatch, formatPatch, OMIT_HEADERS } = await import("diff");
  const options = { context: 3, timeout: TIMEOUT_MS, maxEditLength: MAX_EDIT_LENGTH };
  const patch = structuredPatch(oldName, newName, oldText, newText, undefined, undefined, options);
  if (!patch)
    return `${header}[too different to compare: ${oldText.length} characters before, ${newText.length} after]\n`;
  return boundDiff(header + (patch.hunks.length > 0 ? formatPatch(patch, OMIT_HEADERS) : ""));
}

/** Cuts the diff at a line and appends how much is missing. */
export function boundDiff(diff: string): string {
  if (diff.length <= MAX_DIFF_CHARACTERS) return diff;
  const room = firstCharacters(diff, MAX_DIFF_CHARACTERS - 80);
  const kept = room.slice(0, room.lastIndexOf("\n") + 1) || `${room}\n`;
  return `${kept}[the diff continues: ${diff.length - kept.length} more characters]\n`;
}

function shownPath(path: string, cwd: string): string {
  const way = relative(cwd, path);
  const inside = way !== "" && !isAbsolute(way) && way !== ".." && !way.startsWith(`..${sep}`);
  return inside ? way.replaceAll(sep, "/") : path;
}

function textOf(content: Uint8Array | null): string | undefined {
  if (content === null) return "";
  return content.includes(0) ? undefined : new TextDecoder().decode(content);
}
