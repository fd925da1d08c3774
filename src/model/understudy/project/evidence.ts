/**
 * Parses tool results into structures. Results are text for a model. They may be cut and may contain anything, so they
 * are only ever treated as data. This folder has everything the understudy knows and derives about a project.
 */
import { isObject } from "../../../lib/json.ts";
import type { Message } from "../../../protocol/message.ts";
import { cutLine } from "../bounds.ts";

export interface AnsweredCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly content: string;
  readonly failed: boolean;
}

export interface SourceLine {
  readonly number: number;
  readonly text: string;
}

export type ViewedPath =
  | { readonly kind: "file"; readonly lines: readonly SourceLine[]; readonly cut: boolean }
  | { readonly kind: "folder"; readonly entries: readonly string[]; readonly cut: boolean }
  | { readonly kind: "nothing"; readonly reason: string };

export interface Paths {
  readonly paths: readonly string[];
  /** Includes files that the tool counted but did not list. */
  readonly total: number;
  readonly cut: boolean;
}

export interface Hit {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** The first and the last line number. */
type Range = readonly [number, number];

export interface Hits {
  readonly hits: readonly Hit[];
  readonly cut: boolean;
}

const MAX_RANGES = 10;
const MAX_PATHS = 5000;
const MAX_LINES = 5000;
const MAX_HITS = 1000;
const MAX_PATH_CHARACTERS = 1000;
const MAX_PATH_DEPTH = 60;
const MAX_NOTE_CHARACTERS = 300;
/** Only this much of a result or a row is searched for the tool's own notes and line numbers. */
const EDGE_CHARACTERS = 4000;

/** Returns every answered call, in the order of the calls. */
export function exchangesIn(messages: readonly Message[]): AnsweredCall[] {
  const answers = new Map<string, { content: string; isError: boolean }>();
  for (const message of messages) if (message.role === "tool") answers.set(message.toolCallId, message);
  return messages.flatMap((message) =>
    message.role !== "assistant"
      ? []
      : message.calls.flatMap((call) => {
          const answer = answers.get(call.toolCallId);
          if (answer === undefined) return [];
          return {
            name: call.name,
            arguments: isObject(call.arguments) ? call.arguments : {},
            content: answer.content,
            failed: answer.isError || isRefusal(answer.content),
          };
        }),
  );
}

/** True for texts which say that a call did not run, even if they are not marked as errors. */
export function isRefusal(content: string): boolean {
  return /^(?:Tool '[^']{0,200}' does not exist|Denied by |Permission denied|The execution of this tool, or a previous tool was interrupted|Bad arguments for |Failed to execute )/.test(
    content,
  );
}

/** True if nothing exists there, which is not reported as a failure. */
export function isMissing(content: string): boolean {
  const said = cutLine(firstLine(content));
  return (
    !/^\d+\. /.test(said) && /^Path .* does not exist|no such file|not found|^view_range starts at line/i.test(said)
  );
}

export function parseView(exchange: AnsweredCall | undefined): ViewedPath {
  if (exchange === undefined) return { kind: "nothing", reason: "not asked" };
  if (exchange.failed || isMissing(exchange.content)) return { kind: "nothing", reason: firstLine(exchange.content) };
  const { body, cut } = uncut(exchange.content);
  const lines: SourceLine[] = [];
  let strays = 0;
  const rows = body.split("\n", MAX_LINES + 1);
  for (const row of rows.slice(0, MAX_LINES)) {
    const match = /^(\d+)\.(?: (.*))?$/.exec(row);
    if (match !== null && follows(lines, Number(match[1])))
      lines.push({ number: Number(match[1]), text: match[2] ?? "" });
    else if (row.trim() !== "") strays += 1;
  }
  if (lines.length > 0 && strays <= 2)
    return { kind: "file", lines, cut: cut || strays > 0 || rows.length > MAX_LINES };
  if ((body.trim() === "" || /^Folder .* is empty\.$/.test(cutLine(body.trim()))) && !cut)
    return { kind: "folder", entries: [], cut };
  const entries = rows.map((entry) => entry.trim());
  const named = entries.filter((entry) => entry !== "" && !isNote(entry));
  return { kind: "folder", entries: named.map(withoutDot), cut: cut || entries.some(isNote) };
}

export function parsePaths(exchange: AnsweredCall | undefined): Paths {
  if (exchange === undefined || exchange.failed) return { paths: [], total: 0, cut: false };
  const { body, cut } = uncut(exchange.content);
  const all = body.split("\n");
  // The tool's notes about its result are at the end.
  const rows = (all.length > MAX_PATHS ? [...all.slice(0, MAX_PATHS), ...all.slice(-3)] : all).map((row) => row.trim());
  const notes = rows.filter((row) => row !== "" && isNote(row));
  const named = rows.filter((row) => row !== "" && !isNote(row)).map(withoutDot);
  // A preview may end in the middle of a name.
  const whole = cut ? named.slice(0, -1) : named;
  const paths = whole.filter(isPath).slice(0, MAX_PATHS);
  const unread = Math.max(0, all.length - rows.length);
  const dropped = whole.length - paths.length;
  const more = Number(/\b(\d{1,12}) more\b/.exec(notes.slice(-3).join("\n"))?.[1] ?? 0);
  return {
    paths,
    total: whole.length + unread + more,
    cut: cut || dropped > 0 || unread > 0 || notes.some((note) => !isNone(note)),
  };
}

/** Parses `grep` results in content mode with line numbers. */
export function parseHits(exchange: AnsweredCall | undefined): Hits {
  if (exchange === undefined || exchange.failed) return { hits: [], cut: false };
  const { body, cut } = uncut(exchange.content);
  const hits: Hit[] = [];
  let noted = false;
  for (const row of body.split("\n")) {
    if (hits.length > MAX_HITS) break;
    const match = /^(.+?):(\d{1,9}):(.*)$/.exec(row.slice(0, EDGE_CHARACTERS));
    if (match?.[1] !== undefined && isPath(match[1]))
      hits.push({ path: withoutDot(match[1]), line: Number(match[2]), text: cutLine(match[3] ?? "") });
    else if (row.trim() !== "" && isNote(row) && !isNone(row)) noted = true;
  }
  const many = hits.length > MAX_HITS;
  return { hits: cut || many ? hits.slice(0, -1) : hits, cut: cut || many || noted };
}

/** Returns the output of a shell without the line about its exit. Returns `undefined` if the command failed. */
export function parseShell(exchange: AnsweredCall | undefined): string | undefined {
  if (exchange === undefined || exchange.failed) return undefined;
  const { body } = uncut(exchange.content);
  const shown = body.trimEnd();
  const start = Math.max(0, shown.lastIndexOf("<"));
  const exit = /<(?:exited|shellId: \S+ completed) with exit code (-?\d+)>$/.exec(shown.slice(start).slice(0, 400));
  if (exit !== null && exit[1] !== "0") return undefined;
  return (exit === null ? shown : shown.slice(0, start + exit.index)).trimEnd();
}

/** Merges lines in order. Later reads of the same line win. */
export function mergeLines(parts: readonly (readonly SourceLine[])[]): SourceLine[] {
  const byNumber = new Map<number, SourceLine>();
  for (const line of parts.flat()) byNumber.set(line.number, line);
  return [...byNumber.values()].sort((a, b) => a.number - b.number);
}

export function firstLine(content: string): string {
  return (content.trim().split("\n", 1)[0] ?? "").trim();
}

interface SavedOutput {
  readonly path: string;
  readonly ranges: readonly Range[];
  /** Set if the notice states it. */
  readonly lines?: number;
}

/** Returns the file of a result over the limit, and ranges of lines that each fit into one view. */
export function savedOutput(content: string): SavedOutput | undefined {
  if (!content.startsWith("Output too large")) return undefined;
  const start = content.slice(0, EDGE_CHARACTERS);
  const notice = /^Output too large[^\n(]*\(([\d.]+) KB\)\. Saved to: (.+)$/m.exec(start);
  const path = notice?.[2];
  if (path === undefined) return undefined;
  const preview = uncut(content).body;
  const bytes = Number(notice?.[1]) * 1024;
  // The notice states the number of lines; without it, the number is estimated from the preview.
  const said = /^Read parts .*\(([\d,]+) lines?\)/m.exec(start)?.[1]?.replaceAll(",", "");
  const guessed = Math.ceil(bytes / Math.max(8, preview.length / preview.split("\n").length));
  const rows = said === undefined ? guessed : Number(said);
  const chunk = Math.max(20, Math.min(300, Math.floor(12_000 / (bytes / Math.max(1, rows) + 6))));
  const count = Math.min(MAX_RANGES, Math.ceil(rows / chunk));
  const last = (index: number) => (said === undefined ? (index + 1) * chunk : Math.min(rows, (index + 1) * chunk));
  const ranges = Array.from({ length: count }, (_, index) => [index * chunk + 1, last(index)] as const);
  return { path, ranges, ...(said === undefined ? {} : { lines: rows }) };
}

/** Removes the notice from a result over the limit. Only the preview is evidence. */
function uncut(content: string): { body: string; cut: boolean } {
  if (!content.startsWith("Output too large")) return { body: content, cut: false };
  const preview = /\nPreview \(first [^)]{0,100}\):\n?/.exec(content.slice(0, EDGE_CHARACTERS));
  return { body: preview === null ? "" : content.slice(preview.index + preview[0].length), cut: true };
}

function follows(lines: readonly SourceLine[], number: number): boolean {
  const last = lines.at(-1);
  return last === undefined || number === last.number + 1;
}

/** True for a line that the tool added about its own result, such as "… 120 more" or "No matches found." */
function isNote(row: string): boolean {
  if (row.length > MAX_NOTE_CHARACTERS) return false;
  return (
    isNone(row) ||
    /^\[.*(?:\bcut\b|not shown|more entr|limit).*\]$/i.test(row) ||
    /^[[(<]?\s*(?:…|\.\.\.)|\b\d[\d,]* more\b|^[[(<]?(?:showing|truncated|results? (?:cut|limited|truncated)|only the first)\b/i.test(
      row,
    )
  );
}

function isNone(row: string): boolean {
  return /^(?:no (?:files?|matches|results?|entries)\b|\(?empty\b)/i.test(row);
}

/** Longer or deeper paths are not plausible and are ignored. */
function isPath(path: string): boolean {
  return path.length <= MAX_PATH_CHARACTERS && path.split("/", MAX_PATH_DEPTH + 1).length <= MAX_PATH_DEPTH;
}

function withoutDot(path: string): string {
  return path.replace(/^\.\//, "").replaceAll("\\", "/");
}
