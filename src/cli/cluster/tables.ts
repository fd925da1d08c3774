import { sanitiseLine } from "../../lib/text.ts";
import type { Arguments } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonLine, write } from "../output/output.ts";

export type Table = readonly Readonly<Record<string, string | number | null>>[];

/** Prints each table with its column names, or everything as one JSON object. */
export async function show(given: Arguments, tables: Readonly<Record<string, Table>>): Promise<ExitCode> {
  if (given.has("json")) {
    await write(`${jsonLine(tables, process.stdout)}\n`);
    return exitCodes.done;
  }
  for (const [name, rows] of Object.entries(tables)) {
    if (rows.length === 0) await write(`no ${name}\n`);
    else await write(`${lines(rows).join("\n")}\n`);
  }
  return exitCodes.done;
}

function lines(rows: Table): string[] {
  const names = Object.keys(rows[0] ?? {});
  const cells = [names, ...rows.map((row) => names.map((name) => sanitiseLine(String(row[name] ?? "–"))))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
