import { defined } from "../../lib/defined.ts";
import { badPatch, type Hunk, type HunkLine, type PatchStep } from "./patch.ts";
import { hunkLine } from "./patch-envelope.ts";

const HUNK_HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Parses the output of `diff -u` and `git diff`. Tolerates slightly wrong line counts, which models often produce. */
export function parseUnified(lines: readonly string[]): PatchStep[] {
  const steps: PatchStep[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    if (line.startsWith("diff --git ")) {
      const header = gitHeader(lines, at + 1);
      if (header.rename && !isFileHeader(lines, header.end)) {
        steps.push({ kind: "update", path: header.rename.from, moveTo: header.rename.to, hunks: [] });
      }
      at = header.end;
      if (isFileHeader(lines, at)) at = parseFile(lines, { at, steps, rename: header.rename });
    } else if (isFileHeader(lines, at)) at = parseFile(lines, { at, steps });
    else if (HUNK_HEADER.test(line)) throw badPatch(at + 1, "`--- a/file` and `+++ b/file` must come before `@@`.");
    else at++;
  }
  return steps;
}

interface Rename {
  readonly from: string;
  readonly to: string;
}

function gitHeader(lines: readonly string[], start: number): { end: number; rename?: Rename } {
  let from: string | undefined;
  let to: string | undefined;
  let at = start;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? "";
    if (!/^(index|new file mode|deleted file mode|old mode|new mode|similarity|dissimilarity|rename) /.test(line))
      break;
    from = /^rename from (.+)$/.exec(line)?.[1] ?? from;
    to = /^rename to (.+)$/.exec(line)?.[1] ?? to;
  }
  return { end: at, ...(from !== undefined && to !== undefined && { rename: { from, to } }) };
}

const isFileHeader = (lines: readonly string[], at: number): boolean =>
  (lines[at] ?? "").startsWith("--- ") && (lines[at + 1] ?? "").startsWith("+++ ");

function parseFile(
  lines: readonly string[],
  { at, steps, rename }: { at: number; steps: PatchStep[]; rename?: Rename | undefined },
): number {
  const oldPath = headerPath(lines[at] ?? "");
  const newPath = headerPath(lines[at + 1] ?? "");
  const { hunks, end } = parseHunks(lines, at + 2);
  if (oldPath === null && newPath === null) throw badPatch(at + 1, "both sides are /dev/null.");
  if (oldPath === null && newPath !== null) steps.push({ kind: "add", path: newPath, text: addedText(hunks, at + 1) });
  else if (newPath === null && oldPath !== null) steps.push({ kind: "delete", path: oldPath, hunks });
  else if (oldPath !== null && newPath !== null) {
    if (hunks.length === 0) throw badPatch(at + 3, `there is no change for ${newPath}.`);
    const path = rename?.from ?? oldPath;
    const moveTo = rename?.to ?? newPath;
    steps.push({ kind: "update", path, ...(moveTo !== path && { moveTo }), hunks });
  }
  return end;
}

/** Returns the path without git's `a/` or `b/` prefix; null for /dev/null. */
function headerPath(line: string): string | null {
  const path = line
    .slice(4)
    .replace(/\t.*$/, "")
    .trim()
    .replace(/^"(.*)"$/, "$1");
  return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
}

function parseHunks(lines: readonly string[], start: number): { hunks: Hunk[]; end: number } {
  const hunks: Hunk[] = [];
  let at = start;
  for (;;) {
    const header = HUNK_HEADER.exec(lines[at] ?? "");
    if (!header) return { hunks, end: at };
    const [, startLine = "1", oldCount = "1", , newCount = "1"] = header;
    const body = parseBody(lines, { at: at + 1, left: { old: Number(oldCount), new: Number(newCount) } });
    // An insertion goes after the line that its header names.
    const line = Number(oldCount) === 0 ? Number(startLine) + 1 : Number(startLine);
    hunks.push({ patchLine: at + 1, anchors: [], atEnd: false, startLine: line, ...body.hunk });
    at = body.end;
  }
}

function parseBody(
  lines: readonly string[],
  { at, left }: { at: number; left: { old: number; new: number } },
): { hunk: Pick<Hunk, "lines" | "finalBreak">; end: number } {
  const body: HunkLine[] = [];
  let finalBreak: boolean | undefined;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const inside = left.old > 0 || left.new > 0;
    if (line.startsWith("\\")) {
      finalBreak = body.at(-1)?.kind === "remove";
      continue;
    }
    if (line.startsWith("@@") || line.startsWith("diff --git ")) break;
    if (isFileHeader(lines, at) && (!inside || (lines[at + 2] ?? "").startsWith("@@"))) break;
    if (!inside && (line === "" || !/^[ +-]/.test(line))) break;
    if (line === "" && at === lines.length - 1) break;
    const parsed = hunkLine(line, at + 1);
    body.push(parsed);
    if (parsed.kind !== "add") left.old--;
    if (parsed.kind !== "remove") left.new--;
  }
  return { hunk: { lines: body, ...defined({ finalBreak }) }, end: at };
}

function addedText(hunks: readonly Hunk[], patchLine: number): string {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  if (lines.some(({ kind }) => kind !== "add")) throw badPatch(patchLine, "a new file has only lines with `+`.");
  const text = lines.map((line) => line.text).join("\n");
  return hunks.at(-1)?.finalBreak === false || text === "" ? text : `${text}\n`;
}
