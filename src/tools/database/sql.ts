import * as z from "zod";
import { plural } from "../../lib/text.ts";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError, type ToolResult } from "../tool-error.ts";
import type { StatementResult } from "./messages.ts";
import description from "./sql.md";
import storeDescription from "./sql-store.md";

export const sql = defineTool({
  name: "sql",
  description,
  input: fixed("sql", () =>
    z.object({
      query: z.string().describe("One or more SQLite statements"),
      description: z.string().optional().describe("What it is for, in a few words"),
      database: z.enum(["session", "session_store"]).default("session").describe("Which database"),
    }),
  ),
  run: ({ query, database }, context: ToolContext) => execute(query, database, context),
});

/** The read-only variant: queries on past sessions, for agents that may not write. */
export const sqlStoreTool = defineTool({
  name: "sql",
  description: storeDescription,
  input: fixed("sql of past sessions", () =>
    z.object({
      query: z.string().describe("One SELECT"),
      database: z.literal("session_store").default("session_store"),
    }),
  ),
  readOnly: true,
  run: ({ query, database }, context: ToolContext) => execute(query, database, context),
});

async function execute(
  query: string,
  database: "session" | "session_store",
  { database: port, signal }: ToolContext,
): Promise<ToolResult> {
  if (port === undefined) throw new ToolError("This session has no database.");
  const results = await port.execute({ sql: query, database, signal });
  const [only] = results;
  if (only !== undefined && results.length === 1) return { content: [textOf(only), ...unreadText(only)].join("\n") };
  return { content: [`Executed ${results.length} statement(s):`, ...results.map(numberedResult)].join("\n\n") };
}

function unreadText({ unread = 0, older = 0 }: StatementResult): string[] {
  return [
    ...(unread === 0 ? [] : [`[${plural(unread, "past session")} not indexed yet; repeat the query later for more]`]),
    ...(older === 0 ? [] : [`[${plural(older, "older session")} of this repository not searched]`]),
  ];
}

function numberedResult(result: StatementResult, index: number): string {
  return `${index + 1}. ${result.verb}\n   ${textOf(result).replaceAll("\n", "\n   ")}`;
}

function textOf(result: StatementResult): string {
  const changed = changesOf(result);
  if (result.columns.length === 0) return changed ?? "Statement completed successfully.";
  return changed === undefined || result.wrote === undefined ? tableOf(result) : `${changed}\n${tableOf(result)}`;
}

function changesOf({ verb, wrote, changes, lastRowId, columns }: StatementResult): string | undefined {
  switch (verb === "WITH" ? wrote?.toUpperCase() : verb) {
    case "INSERT":
    case "REPLACE":
      return columns.length > 0 || changes === 0
        ? `${changes} row(s) inserted.`
        : `${changes} row(s) inserted. Last inserted row ID: ${lastRowId}.`;
    case "UPDATE":
      return `${changes} row(s) updated.`;
    case "DELETE":
      return `${changes} row(s) deleted.`;
    case "CREATE":
    case "DROP":
    case "ALTER":
    case "REINDEX":
    case "ANALYZE":
      return "Schema operation completed successfully.";
    default:
      return undefined;
  }
}

function tableOf({ columns, rows, leftOut, isCountCut }: StatementResult): string {
  if (rows.length === 0) return "No rows.";
  const lines = [columns, ...rows].map((row) => row.map(cell).join(" | "));
  const more = `[${isCountCut ? "at least " : ""}${plural(leftOut, "more row")} not shown; narrow the query or use LIMIT and OFFSET]`;
  return [...lines, leftOut > 0 ? more : `(${plural(rows.length, "row")})`].join("\n");
}

/** Returns the value on one line, with the column separator escaped. */
function cell(value: string | null): string {
  if (value === null) return "NULL";
  return value.replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("\r", "\\r").replaceAll("\n", "\\n");
}
