/** Describes `git log` output from the input: number of commits, authors, period. */
import { plural } from "../../../lib/text.ts";
import { heading, inlineText, list } from "../write-answer.ts";
import type { SourceLine } from "./evidence.ts";

interface Commit {
  readonly id: string;
  readonly line: number;
  author?: string;
  date?: string;
  subject?: string;
}

const FULL = /^[*|/\\ ]{0,40}commit ([0-9a-f]{7,64})\b/;
const SHORT = /^[*|/\\ ]{0,40}([0-9a-f]{7,40}) (?:\([^)]{1,200}\) )?(\S.*)$/;
const SHOWN = 5;

/** Returns `undefined` if the text is not a git log. */
export function describeGitLog(lines: readonly SourceLine[], size: string): (string | string[])[] | undefined {
  const full = lines.filter((line) => line.text.trim() !== "");
  const first = full[0]?.text ?? "";
  const commits = FULL.test(first) ? longForm(lines) : SHORT.test(first) ? shortForm(full) : [];
  if (commits.length === 0) return undefined;
  const shown = commits.slice(0, SHOWN);
  const last = commits.slice(shown.length).at(-1);
  return [
    `The text is the output of git log: ${plural(commits.length, "commit")}; ${size}.${spanOf(commits)}`,
    authorsOf(commits),
    heading(last === undefined ? "Commits" : "First commits listed", shown.map(commitRow)),
    heading("Last commit listed", last === undefined ? [] : [commitRow(last)]),
  ];
}

function longForm(lines: readonly SourceLine[]): Commit[] {
  const commits: Commit[] = [];
  for (const { text, number } of lines) {
    const id = FULL.exec(text)?.[1];
    const current = commits.at(-1);
    if (id !== undefined) commits.push({ id, line: number });
    else if (current !== undefined) readInto(current, text.replace(/^[*|/\\ ]{0,40}(?=Author:|AuthorDate:|Date:)/, ""));
  }
  return commits;
}

function readInto(commit: Commit, text: string): void {
  if (commit.subject !== undefined) return;
  const author = /^Author: +([^<]{1,200})/.exec(text)?.[1]?.trim();
  const date = /^(?:Author)?Date: +(\S.*)$/.exec(text)?.[1]?.trim();
  if (author !== undefined) commit.author ??= author;
  else if (date !== undefined) commit.date ??= date;
  else if (/^[|*/\\ ]{0,40} {4}\S/.test(text)) commit.subject = text.replace(/^[|*/\\ ]+/, "").trim();
}

/** Parses one commit per line. Needs two or more, because a single such line may be anything. */
function shortForm(full: readonly SourceLine[]): Commit[] {
  const commits = full.flatMap(({ text, number }) => {
    const match = SHORT.exec(text);
    return match?.[1] === undefined || match[2] === undefined
      ? []
      : [{ id: match[1], line: number, subject: match[2].trim() }];
  });
  const lettered = commits.some(({ id }) => /[a-f]/.test(id));
  return commits.length > 1 && lettered && commits.length * 10 >= full.length * 9 ? commits : [];
}

function spanOf(commits: readonly Commit[]): string {
  const dates = commits.flatMap(({ date }) => (date === undefined ? [] : [{ date, time: Date.parse(date) }]));
  if (dates.length === 0) return "";
  const known = dates.every(({ time }) => !Number.isNaN(time));
  const ordered = known ? dates.sort((a, b) => a.time - b.time) : dates.reverse();
  const [from, to] = [ordered[0]?.date ?? "", ordered.at(-1)?.date ?? ""];
  return from === to ? ` Dated ${inlineText(from, 40)}.` : ` From ${inlineText(from, 40)} to ${inlineText(to, 40)}.`;
}

function authorsOf(commits: readonly Commit[]): string[] {
  const counts = new Map<string, number>();
  for (const { author } of commits) if (author !== undefined) counts.set(author, (counts.get(author) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const names = sorted.map(([name, count]) => `${inlineText(name, 60)} (${count})`);
  return names.length === 0 ? [] : [`**${plural(names.length, "author")}:** ${list(names, 10)}`];
}

function commitRow({ id, line, subject }: Commit): string {
  return `- line ${line}  \`${id.slice(0, 8)}\`  ${inlineText(subject ?? "(no message)", 120)}`;
}
