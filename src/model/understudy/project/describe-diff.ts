/** Describes a diff from the input: files and lines, added and removed names, and what a reviewer looks for first. */
import { plural } from "../../../lib/text.ts";
import { heading, inlineCode, limitRows, list } from "../write-answer.ts";
import type { SourceLine } from "./evidence.ts";
import { isCode, isTest, languageOf } from "./languages.ts";
import { declarationsOf } from "./read-source.ts";

interface ChangedFile {
  readonly path: string;
  /** Its first line in the diff. */
  readonly line: number;
  readonly plus: SourceLine[];
  readonly minus: SourceLine[];
}

const REMINDER = /\b(?:TODO|FIXME|XXX|HACK)\b|^(?:<{7}|>{7})(?:\s|$)/;

export function describeDiff(lines: readonly SourceLine[], size: string): (string | string[])[] {
  const files = filesIn(lines);
  const sum = (key: "plus" | "minus") => files.reduce((total, file) => total + file[key].length, 0);
  const rows = files.map((file) => `- \`${file.path}\` +${file.plus.length} −${file.minus.length} (line ${file.line})`);
  const marked = files.flatMap((file) => file.plus.filter((line) => REMINDER.test(line.text)));
  return [
    `The text is a diff: ${size}; ${plural(files.length, "file")}, +${sum("plus")} −${sum("minus")}.`,
    heading("Files", limitRows(rows, 30, "more files")),
    heading("Names", namesIn(files)),
    heading(
      "Added lines with a reminder or a conflict",
      limitRows(
        marked.map((line) => `- line ${line.number}  ${inlineCode(line.text)}`),
        8,
      ),
    ),
    testsIn(files),
  ];
}

function filesIn(lines: readonly SourceLine[]): ChangedFile[] {
  const files: ChangedFile[] = [];
  for (const { text, number } of lines) {
    const path = /^diff --git a\/.* b\/(.+)$/.exec(text)?.[1] ?? /^\+\+\+ (?:b\/)?(\S+)/.exec(text)?.[1];
    const current = files.at(-1);
    if (path !== undefined && path !== "/dev/null" && current?.path !== path)
      files.push({ path, line: number, plus: [], minus: [] });
    else if (/^\+(?!\+\+)/.test(text)) current?.plus.push({ number, text: text.slice(1) });
    else if (/^-(?!--)/.test(text)) current?.minus.push({ number, text: text.slice(1) });
  }
  return files;
}

/** Returns declarations that are added, removed, or on a changed line. */
function namesIn(files: readonly ChangedFile[]): string[] {
  const added = new Set(files.flatMap((file) => declarationsIn(file.path, file.plus)));
  const removed = new Set(files.flatMap((file) => declarationsIn(file.path, file.minus)));
  const row = (title: string, names: readonly string[]) =>
    names.length === 0
      ? []
      : [
          `- ${title}: ${list(
            names.map((name) => `\`${name}\``),
            12,
          )}`,
        ];
  return [
    ...row(
      "added",
      [...added].filter((name) => !removed.has(name)),
    ),
    ...row(
      "removed",
      [...removed].filter((name) => !added.has(name)),
    ),
    ...row(
      "declared differently",
      [...added].filter((name) => removed.has(name)),
    ),
  ];
}

function declarationsIn(path: string, lines: readonly SourceLine[]): string[] {
  const family = languageOf(path)?.family;
  if (family === undefined || family === "prose" || family === "data") return [];
  return declarationsOf(family, lines).map((one) => one.name);
}

function testsIn(files: readonly ChangedFile[]): string[] {
  const code = files.filter((file) => isCode(file.path));
  if (code.length === 0) return [];
  const tests = code.filter((file) => isTest(file.path)).length;
  return [tests === 0 ? "It changes code and no test." : `${plural(tests, "file")} of tests among them.`];
}
