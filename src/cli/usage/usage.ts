/** `troupe usage`: tokens and cost of all sessions, by day, model, agent or repository. */
import { defined } from "../../lib/defined.ts";
import { sanitiseLine } from "../../lib/text.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { useSessions } from "../cluster/stored-sessions.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { timeOf } from "../since.ts";
import { added, dayOf, nothing, type UsageRow, type UsageTotals } from "./session-usage.ts";
import { allUsage } from "./usage-cache.ts";

const groupings = ["day", "model", "agent", "repository"] as const;
type Grouping = (typeof groupings)[number];

export async function usageCommand(given: Arguments): Promise<ExitCode> {
  if (given.words.length > 1) throw usage("troupe usage takes flags only.");
  const by = given.choice("by", groupings) ?? "day";
  const since = given.text("since");
  const from = since === undefined ? undefined : dayOf(new Date(timeOf(since)));
  const rows = await useSessions(given, ({ runtime: { store }, derived }) =>
    groupedRows({ store, home: derived }, by, from),
  );
  const total = rows.reduce<UsageTotals>((sum, { key: _, ...spent }) => added(sum, spent), nothing);
  if (wantsJson(given)) {
    await write(`${JSON.stringify({ by, ...defined({ since: from }), rows, total }, undefined, 2)}\n`);
    return exitCodes.done;
  }
  if (rows.length === 0)
    await write(from === undefined ? "Nothing was used yet.\n" : `Nothing was used since ${from}.\n`);
  else await write(tableText(by, rows, total));
  return exitCodes.done;
}

interface Group extends UsageTotals {
  readonly key: string;
}

type Read = Pick<Runtime, "store" | "home">;

async function groupedRows(runtime: Read, by: Grouping, from: string | undefined): Promise<Group[]> {
  const { sessions, failed } = await allUsage(runtime);
  for (const { sessionId, message } of failed.slice(0, 5)) printMessage(`session ${sessionId} is left out: ${message}`);
  const repositoryOf = by === "repository" ? await repositories(runtime) : new Map<string, string>();
  const groups = new Map<string, Group>();
  for (const [sessionId, rows] of sessions) {
    for (const row of rows) {
      if (from !== undefined && row.day < from) continue;
      const key = by === "repository" ? (repositoryOf.get(sessionId) ?? "unknown") : row[by];
      groups.set(key, { key, ...added(groups.get(key) ?? nothing, spentOf(row)) });
    }
  }
  return [...groups.values()].sort(by === "day" ? byKey : byCost);
}

const spentOf = ({ day: _, model: __, agent: ___, ...spent }: UsageRow): UsageTotals => spent;
const byKey = (one: Group, other: Group): number => one.key.localeCompare(other.key);
const byCost = (one: Group, other: Group): number =>
  other.costUsd - one.costUsd || other.inputTokens - one.inputTokens || byKey(one, other);

async function repositories({ store }: Read): Promise<Map<string, string>> {
  const summaries = await store.list();
  return new Map(summaries.map(({ sessionId, repository, gitRoot, cwd }) => [sessionId, repository ?? gitRoot ?? cwd]));
}

function tableText(by: Grouping, rows: readonly Group[], total: UsageTotals): string {
  const head = [by, "calls", "input", "cached", "output", "cost"];
  const cells = [head, ...rows.map((row) => cellsOf(row.key, row)), cellsOf("total", total)];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join("  "),
  );
  const note =
    total.unpriced === 0 ? "" : `+ the cost of ${number(total.unpriced)} calls to models without a known price\n`;
  return `${lines.join("\n")}\n${note}`;
}

function cellsOf(key: string, spent: UsageTotals): string[] {
  const cost = `${spent.unpriced > 0 ? "+ " : ""}$${spent.costUsd.toFixed(4)}`;
  const { calls, inputTokens, cacheReadTokens, outputTokens } = spent;
  return [sanitiseLine(key), ...[calls, inputTokens, cacheReadTokens, outputTokens].map(number), cost];
}

const number = (value: number): string => value.toLocaleString("en-US");
