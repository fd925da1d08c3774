/** Agents at work, one row each, in the live region. */
import { agentRows, groupText } from "../../view/agent-rows.ts";
import { isBusy } from "../../view/draft.ts";
import type { AgentView, View } from "../../view/view.ts";
import { waitChain, waitText } from "../../view/waits.ts";
import { safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { tokensText } from "../transcript/block-lines.ts";

const MAX_ROWS = 4;
const MAX_NAME = 40;

export function agentStrip(view: View, options: { style: Style; columns: number; now: number }): string[] {
  const rows = agentRows(view, (agent) => isBusy(agent) && agent.kind !== "sidekick");
  if (rows.length === 0) return [];
  const shown = rows.length > MAX_ROWS ? rows.slice(0, MAX_ROWS - 1) : rows;
  const hidden = rows.slice(shown.length).filter(({ kind }) => kind === "agent").length;
  return [
    ...shown.map((row) => {
      const indent = "  ".repeat(row.depth);
      if (row.kind === "group") return `${indent}${options.style.bold(safeLine(groupText(groupOf(view, row.agents))))}`;
      return `${indent}${agentRow(row.agent, { ...options, wait: waitOf(view, row.agent) })}`;
    }),
    ...(hidden > 0 ? [options.style.dim(`  … ${hidden} more agents at work · Ctrl+T`)] : []),
  ];
}

/** All workers of the group, also those that have ended. */
function groupOf(view: View, [first]: readonly AgentView[]): readonly AgentView[] {
  return [...view.agents.values()].filter(
    ({ card, parentId }) => card !== undefined && card.group === first?.card?.group && parentId === first.parentId,
  );
}

/** The end of the chain for which the agent waits, in a few words. */
export function waitOf(view: View, agent: AgentView): string {
  const last = waitChain(view, agent.id).at(-1);
  if (!last || last.kind === "tool") return "";
  if (last.kind === "attention") {
    const { agentId = "" } = last.item;
    return agentId === agent.id ? "needs your answer" : `waits for ${safeLine(agentId).slice(0, MAX_NAME)}`;
  }
  if (last.kind === "agent") return `waits for ${safeLine(last.agentId).slice(0, MAX_NAME)}`;
  return `waits: ${safeLine(waitText([last])).slice(0, 60)}`;
}

/** `ann (Explore)`: the id, and the kind of agent if it says more. */
export function agentName({ id, displayName, name }: Pick<AgentView, "id" | "displayName" | "name">): string {
  const kind = (displayName || name).replace(/ Agent$/, "");
  return safeLine(kind === id ? id : `${id} (${kind})`);
}

interface RowOptions {
  readonly style: Style;
  readonly now: number;
  /** Why it waits; empty if it does not. */
  readonly wait: string;
}

export function agentRow(agent: AgentView, { style, now, wait }: RowOptions): string {
  const name = agentName(agent).slice(0, MAX_NAME);
  const ended = agent.card?.result?.status;
  const mark = ended === "blocked" ? (of: Style) => of.yellow("◆") : MARKS[agent.status];
  const age = ageText((agent.endedAt ?? now) - agent.startedAt);
  const doing = agent.lastTool
    ? safeLine(agent.lastTool.title).slice(0, 60)
    : safeLine(agent.intent || agent.description);
  const used = agent.spent.inputTokens + agent.spent.outputTokens;
  const facts = [
    agent.status === "running" ? undefined : (ended ?? agent.status),
    age,
    used > 0 ? `${tokensText(used)} tok` : undefined,
    doing === "" ? undefined : doing,
  ];
  const why = wait === "" ? "" : `${style.yellow(wait)}${style.dim(" · ")}`;
  return `${mark(style)} ${name} ${why}${style.dim(facts.filter((fact) => fact !== undefined).join(" · "))}`;
}

const MARKS: Readonly<Record<AgentView["status"], (style: Style) => string>> = {
  queued: (style) => style.dim("◌"),
  running: (style) => style.yellow("◆"),
  idle: (style) => style.cyan("◇"),
  completed: (style) => style.green("◆"),
  failed: (style) => style.red("✗"),
  cancelled: (style) => style.dim("✗"),
};

function ageText(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
