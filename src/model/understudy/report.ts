/**
 * The report of an agent about its part of a repository. One side writes the rows, the other parses them. Rows are
 * untrusted data: a row counts only if it names a known file of that part.
 */
import { cutLine } from "./bounds.ts";
import type { PromptPart } from "./delegate.ts";
import { answerTo, type Scene } from "./plan/plan.ts";
import { firstLine } from "./project/evidence.ts";
import { cite, heading, hitRow, inlineText, writeAnswer } from "./write-answer.ts";

export interface ReportRow {
  /** `remark`: the file's description. `names`: its declarations. `quote`: a verbatim line. */
  readonly kind: "remark" | "names" | "quote";
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface Report {
  readonly folder: string;
  readonly rows: readonly ReportRow[];
}

const MAX_REPORT_ROWS = 200;
const MAX_ROW_CHARACTERS = 150;
const DECLARES = "declares ";

export function writeReport(what: { lead: string; rows: readonly ReportRow[]; notes: readonly string[] }): string {
  const told = what.rows.filter((row) => row.kind !== "quote");
  const quotes = what.rows.filter((row) => row.kind === "quote");
  return writeAnswer([what.lead, heading("Files", told.map(rowText)), heading("Uses", quotes.map(hitRow)), what.notes]);
}

/** Returns the non-empty reports of parts whose agents have ended. */
export function reportsOf(scene: Scene, parts: readonly PromptPart[], files: ReadonlySet<string>): Report[] {
  return parts.flatMap(({ folder, call }) => {
    const answer = answerTo(scene, call);
    if (answer === undefined || answer.failed) return [];
    const rows = readRows(answer.content).filter(({ path }) => path.startsWith(`${folder}/`) && files.has(path));
    return rows.length === 0 ? [] : [{ folder, rows }];
  });
}

/** Returns one line that says why parts were explored without their agent. */
export function unreported(scene: Scene, parts: readonly PromptPart[], reports: readonly Report[]): string[] {
  const silent = parts.filter((part) => reports.every(({ folder }) => folder !== part.folder));
  const missing = silent.flatMap(({ call }) => answerTo(scene, call) ?? []);
  if (missing.length === 0) return [];
  const failure = missing.find(({ failed }) => failed);
  const who = `${missing.length} of ${parts.length} agents gave no report, so I looked there myself`;
  return [failure === undefined ? `${who}.` : `${who} – task: ${firstSentence(failure.content)}`];
}

/** Returns the first sentence; the rest is advice for a model. */
function firstSentence(content: string): string {
  const line = firstLine(content).slice(0, MAX_ROW_CHARACTERS);
  return line.split(/(?<=[.!?])\s/, 1)[0] ?? line;
}

function readRows(content: string): ReportRow[] {
  return content.split("\n", MAX_REPORT_ROWS).flatMap((line) => {
    const row = cutLine(line);
    const match = /^\s*[-*] `([^`\s]+):(\d{1,7})`(?: [-\u2013\u2014] |: | {1,2})(\S.*)$/.exec(row);
    const [, path = "", number = "", text = ""] = match ?? [];
    if (Number(number) < 1) return [];
    const quote = /^(?:`` (.+) ``|`([^`]+)`)$/.exec(text);
    const kind = quote !== null ? "quote" : text.startsWith(DECLARES) ? "names" : "remark";
    const said = quote?.[1] ?? quote?.[2] ?? inlineText(text, MAX_ROW_CHARACTERS);
    return [{ kind, path: path.replace(/^\.\//, ""), line: Number(number), text: said }];
  });
}

/** Formats one row, for a report and for display. */
export function rowText({ path, line, text }: ReportRow): string {
  return `- ${cite(path, line)} – ${inlineText(text, MAX_ROW_CHARACTERS)}`;
}
