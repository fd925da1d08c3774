import { isAbsolute, resolve } from "node:path";
import type { Diff, ToolCallLocation } from "@agentclientprotocol/sdk";

export interface FileChanges {
  /** One for each hunk. */
  readonly diffs: readonly Diff[];
  readonly locations: readonly ToolCallLocation[];
  /** False if a part of the diff was cut off or is not text. */
  readonly isWhole: boolean;
}

interface Hunk {
  readonly line: number;
  readonly oldText: string;
  readonly newText: string;
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const NO_NEWLINE = "\\ No newline at end of file";

/** Parses a unified diff as troupe's tools write it. Paths are absolute, or relative to `cwd`. */
export function fileChanges(diff: string, cwd: string): FileChanges {
  const lines = diff.split("\n");
  const diffs: Diff[] = [];
  const locations: ToolCallLocation[] = [];
  let file: { path: string; isNew: boolean } | undefined;
  let isWhole = true;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const next = lines[at + 1] ?? "";
    if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      file = fileOf(line.slice(4), next.slice(4), cwd);
      locations.push({ path: file.path });
      at += 2;
    } else if (file && HUNK.test(line)) {
      const read = readHunk(lines, at);
      at = read.next;
      if (!read.hunk) return { diffs, locations, isWhole: false };
      const { line: first, oldText, newText } = read.hunk;
      diffs.push({ path: file.path, newText, ...(file.isNew ? {} : { oldText }) });
      if (locations.at(-1)?.line === undefined) locations[locations.length - 1] = { path: file.path, line: first };
    } else {
      isWhole &&= line === "";
      at++;
    }
  }
  return { diffs, locations, isWhole: isWhole && diffs.length > 0 };
}

function fileOf(before: string, after: string, cwd: string): { path: string; isNew: boolean } {
  const name = (after === "/dev/null" ? before : after).replace(/^[ab]\//, "");
  return { path: isAbsolute(name) ? name : resolve(cwd, name), isNew: before === "/dev/null" };
}

/** The counts in the header determine which lines belong to the hunk. */
function readHunk(lines: readonly string[], at: number): { readonly hunk: Hunk | undefined; readonly next: number } {
  const [, oldCount = "1", line = "1", newCount = "1"] = HUNK.exec(lines[at] ?? "") ?? [];
  let [oldLeft, newLeft] = [Number(oldCount), Number(newCount)];
  const before = new Side();
  const after = new Side();
  let next = at + 1;
  for (; oldLeft > 0 || newLeft > 0 || lines[next] === NO_NEWLINE; next++) {
    const text = lines[next];
    if (text === NO_NEWLINE) {
      // The marker refers to the line before it.
      const mark = lines[next - 1]?.[0];
      if (mark !== "+") before.cutEnd();
      if (mark !== "-") after.cutEnd();
      continue;
    }
    const mark = text?.[0];
    if (text === undefined || (mark !== " " && mark !== "-" && mark !== "+")) return { hunk: undefined, next };
    if (mark !== "+") {
      before.add(text.slice(1));
      oldLeft--;
    }
    if (mark !== "-") {
      after.add(text.slice(1));
      newLeft--;
    }
  }
  return { hunk: { line: Math.max(1, Number(line)), oldText: before.text, newText: after.text }, next };
}

class Side {
  text = "";

  add(line: string): void {
    this.text += `${line}\n`;
  }

  cutEnd(): void {
    this.text = this.text.slice(0, -1);
  }
}
