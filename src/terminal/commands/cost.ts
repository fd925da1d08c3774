/** The report of `/cost`. */
import { agentRows } from "../../view/agent-rows.ts";
import type { AgentView, Spent, View } from "../../view/view.ts";
import type { Host } from "../host.ts";
import { safeLine } from "../screen/safe.ts";
import { clipRow, widthOf } from "../screen/width.ts";
import { tokensText } from "../transcript/block-lines.ts";

const MAX_NAME = 28;

/** Tokens and cost per agent, with the sums of their subtrees. */
export function showCost(app: Host): void {
  const { view } = app.session ?? {};
  if (!view) return;
  const agents = agentRows(view).flatMap((row) =>
    row.kind === "agent" ? [cells(`${"  ".repeat(row.depth + 1)}${row.agent.id}`, row.agent)] : [],
  );
  const rows = [["", "in", "out", "cost", "with agents"], cells("main agent", view.main), ...agents];
  const [head = "", ...lines] = alignColumns(rows);
  app.commit([
    "",
    app.style.bold(`Cost${head.slice("Cost".length)}`),
    ...lines,
    ...budgetLines(view).map((line) => safeLine(line)),
  ]);
}

function cells(name: string, { spent, subtree }: AgentView): string[] {
  const { inputTokens, outputTokens } = spent;
  return [
    clipRow(safeLine(name), MAX_NAME),
    tokensText(inputTokens),
    tokensText(outputTokens),
    usd(spent),
    usd(subtree),
  ];
}

/** A plus: the price of a model is not known. */
const usd = ({ costUsd, isCostKnown }: Spent): string => `$${costUsd.toFixed(4)}${isCostKnown ? "" : "+"}`;

/** The first column to the left, all others to the right. */
function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ""))));
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const blanks = " ".repeat((widths[column] ?? 0) - widthOf(cell));
        return column === 0 ? `${cell}${blanks}` : `${blanks}${cell}`;
      })
      .join("  ")
      .trimEnd(),
  );
}

/** Limits that were set, how much of them is used, and the last one that ended something. */
function budgetLines({ budget, agents }: View): string[] {
  const { maxAiCredits, usedNanoAiu, reached } = budget;
  const credits =
    maxAiCredits === undefined ? [] : [`budget: ${((usedNanoAiu ?? 0) / 1e9).toFixed(2)} of ${maxAiCredits} credits`];
  const limited = [...agents.values()].flatMap(({ id, limits }) => {
    const set = Object.entries(limits ?? {}).filter(([, value]) => typeof value === "number");
    return set.length === 0 ? [] : [`limits of ${id}: ${set.map(([name, value]) => `${name} ${value}`).join(", ")}`];
  });
  const ended = reached === undefined ? [] : [`${reached.agentId ?? "the main agent"}: ${reached.message}`];
  return [...credits, ...limited.slice(0, 20), ...ended];
}
