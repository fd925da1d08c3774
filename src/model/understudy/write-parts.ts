/** Merges the reports of agents about their parts into one section. */
import { plural } from "../../lib/text.ts";
import { folderHolding, importedPath } from "./project/uses.ts";
import { type Report, type ReportRow, rowText } from "./report.ts";
import { cite, heading } from "./write-answer.ts";

/** Maximum number of file rows over all parts. Many parts get fewer rows each. */
const MAX_FILE_ROWS = 14;
const MAX_ROWS_EACH = 4;
const MAX_LINE_CHARACTERS = 220;

interface Known {
  /** Folders shown in the map. */
  readonly folders: readonly string[];
  /** Files that the answer already describes. */
  readonly said: ReadonlySet<string>;
  /** Names under which the project's own code may import it. */
  readonly names: readonly string[];
}

export function partSection(reports: readonly Report[], known: Known): string[] {
  const each = Math.min(MAX_ROWS_EACH, Math.floor(MAX_FILE_ROWS / Math.max(1, reports.length)));
  const rows = reports.flatMap((report) => {
    const files = firstOfEach(report.rows.filter((row) => row.kind !== "quote" && !known.said.has(row.path)));
    const uses = usesOf(report, known);
    const lines = files.slice(0, each).map((row) => `  ${rowText(row)}`);
    return uses === "" && lines.length === 0 ? [] : [`- \`${report.folder}/\`${uses}`, ...lines];
  });
  return heading(`Inside the largest parts (found by ${plural(reports.length, "`explore` agent")})`, rows);
}

function usesOf({ folder, rows }: Report, { folders, names }: Known): string {
  const uses = new Map<string, ReportRow>();
  for (const row of rows.filter(({ kind }) => kind === "quote")) {
    const target = importedPath(row.path, row.text, names);
    const holding = target === undefined ? undefined : folderHolding(target, folders);
    if (holding === undefined || `${folder}/`.startsWith(`${holding}/`) || uses.has(holding)) continue;
    uses.set(holding, row);
  }
  let line = "";
  for (const [used, { path, line: number }] of uses) {
    const next = `${line === "" ? " uses" : `${line},`} \`${used}/\` (${cite(path, number)})`;
    if (next.length > MAX_LINE_CHARACTERS) break;
    line = next;
  }
  return line;
}

function firstOfEach(rows: readonly ReportRow[]): ReportRow[] {
  return [...new Map([...rows].reverse().map((row) => [row.path, row])).values()].reverse();
}
