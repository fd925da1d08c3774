/** Draws the agents of a view as terminal lines, within the given width and number of rows. */
import { plural, sanitiseLine } from "../../lib/text.ts";
import { type Labels, labelsFor, statusLabel, workerLabel } from "../../protocol/labels.ts";
import { type AgentRow, agentRows, groupText, isCurrentWorker } from "../../view/agent-rows.ts";
import { isBusy } from "../../view/draft.ts";
import type { AgentView, View } from "../../view/view.ts";
import { waitChain, waitedFor, waitText } from "../../view/waits.ts";
import { clipColumns, columnsOf } from "./columns.ts";

export interface TreeLayout {
  readonly now: number;
  /** In columns. */
  readonly width: number;
  readonly rows: number;
  readonly colour: boolean;
  /** Default: English. */
  readonly labels?: Labels;
}

const english = labelsFor({});

/** Returns the lines: the main agent, the working agents, and the number of finished ones. */
export function treeLines(main: string, view: View, drawing: TreeLayout): string[] {
  const all = agentRows(view, ({ kind, isPast }) => kind !== "sidekick" && !isPast);
  const shown = chooseAgents(all, view, drawing.rows - 2);
  const hidden = all.flatMap((row) => (row.kind === "agent" && !shown.includes(row) ? [row.agent] : []));
  const lines = shown.map((row, index) => rowLine(row, { view, drawing, branch: branchOf(shown, index) }));
  const rest = restText(hidden);
  const count = rest === "" ? [] : [[{ text: `  ${rest}`, style: "dim" } as const]];
  return [[{ text: `… ${main}`, style: "plain" } as const], ...lines, ...count]
    .slice(0, Math.max(1, drawing.rows))
    .map((segments) => paint(segments, drawing));
}

/**
 * Chooses the agents to draw: working agents first, then idle ones and results of workers if there is room. Others that
 * ended are only counted.
 */
function chooseAgents(all: readonly AgentRow[], view: View, room: number): readonly AgentRow[] {
  const isLiving = (agent: AgentView): boolean => isBusy(agent) || agent.status === "idle";
  const filters = [(agent: AgentView) => isLiving(agent) || isCurrentWorker(view, agent), isLiving, isBusy];
  const fits = filters.map((filter) => rowsOf(all, filter)).find((rows) => rows.length <= room);
  return fits ?? rowsOf(all, isBusy).slice(0, Math.max(0, room));
}

function rowsOf(all: readonly AgentRow[], isShown: (agent: AgentView) => boolean): readonly AgentRow[] {
  return all.filter((row) => (row.kind === "group" ? row.agents.some(isShown) : isShown(row.agent)));
}

function restText(hidden: readonly AgentView[]): string {
  const count = (what: string, is: (agent: AgentView) => boolean): string[] => {
    const found = hidden.filter(is).length;
    return found === 0 ? [] : [`${found} ${what}`];
  };
  return [
    ...count("more at work", isBusy),
    ...count("idle", ({ status }) => status === "idle"),
    ...count("finished", ({ status }) => status === "completed"),
    ...count("failed", ({ status }) => status === "failed"),
    ...count("stopped", ({ status }) => status === "cancelled"),
  ].join(", ");
}

function branchOf(rows: readonly AgentRow[], index: number): string {
  const { depth = 0 } = rows[index] ?? {};
  const rails = Array.from({ length: depth }, (_, level) => (goesOn(rows, index, level) ? "│ " : "  "));
  return `${rails.join("")}${goesOn(rows, index, depth) ? "├ " : "└ "}`;
}

/** Whether a later row continues the same tree line. */
function goesOn(rows: readonly AgentRow[], index: number, level: number): boolean {
  for (const { depth } of rows.slice(index + 1)) {
    if (depth < level) return false;
    if (depth === level) return true;
  }
  return false;
}

interface Placed {
  readonly view: View;
  readonly drawing: TreeLayout;
  readonly branch: string;
}

function rowLine(row: AgentRow, how: Placed): Segment[] {
  if (row.kind === "agent") return agentLine(row.agent, how);
  return [
    { text: how.branch, style: "dim" },
    { text: groupText(row.agents, how.drawing.labels ?? english), style: "plain" },
  ];
}

interface Segment {
  readonly text: string;
  readonly style: "plain" | "name" | "good" | "wait" | "dim";
}

function agentLine(agent: AgentView, { view, drawing, branch }: Placed): Segment[] {
  const waits = ownWait(view, agent);
  const elapsed = isBusy(agent) ? ` ${seconds(drawing.now - agent.startedAt)}` : "";
  const result = isBusy(agent) ? undefined : agent.card?.result;
  const labels = drawing.labels ?? english;
  const state = waits === "" ? statusLabel(result?.status ?? agent.status, labels) : `waiting for ${waits}`;
  const name = workerLabel(agent.card?.title ?? agent.name, agent.name, labels);
  const head: Segment[] = [
    { text: branch, style: "dim" },
    { text: agent.id, style: "name" },
    { text: ` (${name}) `, style: "plain" },
    { text: `${state}${elapsed}`, style: waits === "" && isBusy(agent) ? "good" : "wait" },
  ];
  const left = drawing.width - head.reduce((sum, { text }) => sum + columnsOf(sanitiseLine(text)), 0);
  const numbers = numbersOf(agent, left - MIN_TOOL_COLUMNS - 3);
  // A long command must not push the costs off the screen.
  const room = Math.max(MIN_TOOL_COLUMNS, left - columnsOf(numbers) - 3);
  const tool = isBusy(agent) ? clipColumns(agent.lastTool?.title ?? "", MAX_TOOL_COLUMNS) : "";
  const told = doing([result?.summary ?? "", tool, agent.intent], room);
  return [...head, { text: `${told}${numbers}`, style: "dim" }];
}

/** Every agent has its own line, so the chain of waits stops at the next agent. */
function ownWait(view: View, agent: AgentView): string {
  const awaited = waitedFor(view, agent);
  if (awaited.length > 0) return awaited.map(({ id }) => id).join(", ");
  return waitText(waitChain(view, agent.id).filter(({ kind }) => kind !== "tool"));
}

/** Returns tokens and cost, and the number of tool calls if it fits. */
function numbersOf({ spent }: AgentView, room: number): string {
  const { tools, inputTokens, outputTokens, costUsd, isCostKnown } = spent;
  const tokens = inputTokens + outputTokens;
  const count = tools > 0 ? ` · ${plural(tools, "tool")}` : "";
  const price = [
    tokens > 0 ? ` · ${tokens.toLocaleString("en-US")} tokens` : "",
    costUsd > 0 && isCostKnown ? ` · $${costUsd.toFixed(4)}` : "",
  ].join("");
  return columnsOf(`${count}${price}`) <= room ? `${count}${price}` : price;
}

/** Returns the first text that is not empty, and those after it that still fit. */
function doing(texts: readonly string[], room: number): string {
  let left = room;
  let all = "";
  for (const text of texts.map(sanitiseLine).filter((one) => one !== "")) {
    if (all !== "" && left < MIN_TOOL_COLUMNS) break;
    const part = clipColumns(text, left);
    left -= columnsOf(part) + 3;
    all += ` · ${part}`;
  }
  return all;
}

const MIN_TOOL_COLUMNS = 12;
const MAX_TOOL_COLUMNS = 100;

const codes = { plain: "", name: "1", good: "32", wait: "33", dim: "2" } as const;

/** Untrusted text cannot control the terminal. No line exceeds the width, so that it can be redrawn. */
function paint(segments: readonly Segment[], { width, colour }: TreeLayout): string {
  let left = width;
  let line = "";
  for (const { text, style } of segments) {
    const safe = clipColumns(sanitiseLine(text), left);
    left -= columnsOf(safe);
    line += colour && codes[style] && safe !== "" ? `\u001b[${codes[style]}m${safe}\u001b[0m` : safe;
  }
  return line;
}

export const seconds = (milliseconds: number): string => `${Math.max(0, Math.round(milliseconds / 1000))} s`;
