/** Runs one statement and reads its rows. Runs in the database process: see `program.ts`. */
import type { DatabaseLimits, DatabaseRequest, OpenDatabase, StatementResult } from "./messages.ts";

export interface StatementRunner {
  run(opened: OpenDatabase, statement: Statement, limits: DatabaseLimits): StatementResult;
  /** Records that the current statement writes to a table. */
  recordWrite(opened: OpenDatabase, code: number, table: string | null): void;
}

type Statement = DatabaseRequest["statements"][number];

/** Self-contained: sent to the database process as source text. */
export function statementRunner(readRows: typeof readBounded): StatementRunner {
  const insert = 18;
  const update = 23;
  const deletion = 9;
  const dropping = [11, 13];
  const altering = 26;
  return { run, recordWrite };

  function recordWrite(opened: OpenDatabase, code: number, table: string | null): void {
    const wrote = code === insert ? "insert" : code === update ? "update" : code === deletion ? "delete" : undefined;
    if (wrote !== undefined) {
      opened.wrote ??= wrote;
      opened.hasWritten = true;
    }
    if (wrote !== undefined || dropping.includes(code)) opened.touched.add(String(table).toLowerCase());
    if (code === altering) opened.hasWritten = true;
  }

  function run(
    opened: OpenDatabase,
    { sql, verb, parameters = [] }: Statement,
    limits: DatabaseLimits,
  ): StatementResult {
    opened.wrote = undefined;
    opened.hasWritten = false;
    const before = new Set(opened.touched);
    const statement = opened.connection.prepare(sql, { readBigInts: true, returnArrays: true });
    const columns = statement.columns().map(({ name }) => name);
    const { wrote, hasWritten } = opened;
    const base = { verb, wrote, columns, lastRowId: "0" };
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...parameters);
      const isData = ["INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"].includes(verb);
      if (isData && Number(changes) === 0) opened.touched = before;
      return {
        ...base,
        changes: Number(changes),
        lastRowId: String(lastInsertRowid),
        rows: [],
        leftOut: 0,
        isCountCut: false,
      };
    }
    const read = readRows(statement.iterate(...parameters), limits, hasWritten);
    const changes = hasWritten ? read.rows.length + read.leftOut : 0;
    if (hasWritten && changes === 0) opened.touched = before;
    return { ...base, ...read, changes };
  }
}

/**
 * Reads rows up to the limits. A writing statement must run to its end. A reading one may stop once enough omitted rows
 * are counted. Self-contained: sent to the database process as source text.
 */
export function readBounded(
  source: Iterable<unknown>,
  limits: DatabaseLimits,
  hasWritten: boolean,
): Pick<StatementResult, "rows" | "leftOut" | "isCountCut"> {
  const rows: (string | null)[][] = [];
  let characters = 0;
  let leftOut = 0;
  for (const row of source) {
    const cells = leftOut > 0 ? [] : (row as unknown[]).map((value) => cell(value, limits));
    characters += cells.reduce((sum, text) => sum + (text?.length ?? 4) + 3, 0);
    if (leftOut === 0 && rows.length < limits.rows && (characters <= limits.characters || rows.length === 0))
      rows.push(cells);
    else leftOut++;
    if (leftOut >= limits.countedRows && !hasWritten) return { rows, leftOut, isCountCut: true };
  }
  return { rows, leftOut, isCountCut: false };

  function cell(value: unknown, { valueCharacters }: DatabaseLimits): string | null {
    if (value === null || value === undefined) return null;
    if (value instanceof Uint8Array) return `<${value.length} bytes>`;
    const text = String(value);
    return text.length > valueCharacters ? `${text.slice(0, valueCharacters)}…` : text;
  }
}
