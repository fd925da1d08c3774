import { badPatch, type Hunk, type HunkLine, type PatchStep } from "./patch.ts";

/** Parses `*** Begin Patch`, file sections, `*** End Patch`. */
export function parseEnvelope(lines: readonly string[], start: number): PatchStep[] {
  const steps: PatchStep[] = [];
  let at = start;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "*** End Patch") return steps;
    const section = /^\*\*\* (Add|Update|Delete) File: *(.+?)\s*$/.exec(line);
    if (section) {
      const [, verb, path = ""] = section;
      const end = sectionEnd(lines, at + 1);
      const body = { lines: lines.slice(at + 1, end), patchLine: at + 2 };
      steps.push(
        verb === "Add" ? addStep(path, body) : verb === "Update" ? updated(path, body) : deleteStep(path, body),
      );
      at = end;
    } else if (line.trim() === "") at++;
    else
      throw badPatch(at + 1, "`*** Add File: `, `*** Update File: `, `*** Delete File: ` or `*** End Patch` expected.");
  }
  throw badPatch(lines.length, "`*** End Patch` is missing, so the patch may be incomplete.");
}

interface Body {
  readonly lines: readonly string[];
  /** 1-based line of the patch where the body begins. */
  readonly patchLine: number;
}

function sectionEnd(lines: readonly string[], start: number): number {
  const offset = lines
    .slice(start)
    .findIndex((line) => /^\*\*\* (Add File|Update File|Delete File|End Patch)/.test(line));
  return offset === -1 ? lines.length : start + offset;
}

function addStep(path: string, { lines, patchLine }: Body): PatchStep {
  const texts = lines.map((line, index) => {
    if (line.startsWith("+")) return line.slice(1);
    throw badPatch(patchLine + index, "every line of an added file begins with `+`.");
  });
  return { kind: "add", path, text: texts.map((text) => `${text}\n`).join("") };
}

function deleteStep(path: string, { lines, patchLine }: Body): PatchStep {
  const stray = lines.findIndex((line) => line.trim() !== "");
  if (stray !== -1) throw badPatch(patchLine + stray, "nothing may follow `*** Delete File`.");
  return { kind: "delete", path, hunks: [] };
}

function updated(path: string, { lines, patchLine }: Body): PatchStep {
  const move = /^\*\*\* Move to: *(.+?)\s*$/.exec(lines[0] ?? "");
  const first = move ? 1 : 0;
  const hunks = parseHunks({ lines: lines.slice(first), patchLine: patchLine + first });
  if (hunks.length === 0 && !move) throw badPatch(patchLine, `there is no change for ${path}.`);
  return { kind: "update", path, ...(move?.[1] !== undefined && { moveTo: move[1] }), hunks };
}

function parseHunks({ lines, patchLine }: Body): Hunk[] {
  const hunks: Hunk[] = [];
  let anchors: string[] = [];
  let body: HunkLine[] = [];
  let begins = patchLine;
  const finish = (atEnd: boolean): void => {
    if (body.length > 0) hunks.push({ patchLine: begins, lines: body, anchors, atEnd });
    if (body.length > 0) anchors = [];
    body = [];
  };
  for (const [index, line] of trimmedEnd(lines).entries()) {
    const header = /^@@(?: (.*?))?(?: @@)?$/.exec(line);
    if (header) {
      finish(false);
      const anchor = header[1]?.replace(/^-\d\S* \+\d\S*(?: @@ ?)?/, "") ?? "";
      if (anchor.trim() !== "") anchors.push(anchor);
      continue;
    }
    if (line.trim() === "*** End of File") {
      finish(true);
      continue;
    }
    if (body.length === 0) begins = patchLine + index;
    body.push(hunkLine(line, patchLine + index));
  }
  finish(false);
  return hunks;
}

export function hunkLine(line: string, patchLine: number): HunkLine {
  const text = line.slice(1);
  if (line === "" || line.startsWith(" ")) return { kind: "keep", text };
  if (line.startsWith("+")) return { kind: "add", text };
  if (line.startsWith("-")) return { kind: "remove", text };
  throw badPatch(patchLine, "a line of a change begins with a space, `+` or `-`.");
}

/** Drops empty lines between sections. */
function trimmedEnd(lines: readonly string[]): readonly string[] {
  let end = lines.length;
  while (end > 0 && lines[end - 1] === "") end--;
  return lines.slice(0, end);
}
