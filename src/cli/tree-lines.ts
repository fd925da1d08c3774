/** The drawing of the tree: lines of a terminal, never more or wider than asked. */
import { plural, sanitiseLine } from "../lib/text.ts";
import { type Labels, labelsFor, statusLabel, workerLabel } from "../protocol/labels.ts";
import { groupText } from "./cards.ts";
import { clipColumns, columnsOf } from "./columns.ts";
import { isBusy, type Member, type Row, type Tree } from "./tree.ts";

export interface Drawing {
  readonly now: number;
  /** In columns. */
  readonly width: number;
  readonly rows: number;
  readonly colour: boolean;
  /** English unless given. */
  readonly labels?: Labels;
}

const english = labelsFor({});

/** The lines of a terminal: the main agent, those at work, and how many are done. Never more or wider than asked. */
export function treeLines(main: string, tree: Tree, drawing: Drawing): string[] {
  const all = tree.walk();
  const shown = chosen(all, tree, drawing.rows - 2);
  const hidden = all.flatMap((row) => (row.kind === "member" && !shown.includes(row) ? [row.member] : []));
  const lines = shown.map((row, index) => rowLine(row, { tree, drawing, branch: branchOf(shown, index) }));
  const rest = restText(hidden);
  const count = rest === "" ? [] : [[{ text: `  ${rest}`, style: "dim" } as const]];
  return [[{ text: `… ${main}`, style: "plain" } as const], ...lines, ...count]
    .slice(0, Math.max(1, drawing.rows))
    .map((segments) => paint(segments, drawing));
}

/** Those at work first; the idle, and the results of workers, as far as there is room. Whoever else ended is only counted. */
function chosen(all: readonly Row[], tree: Tree, room: number): readonly Row[] {
  const isLiving = (member: Member): boolean => isBusy(member) || member.status === "idle";
  const wishes = [(member: Member) => isLiving(member) || tree.isCurrent(member), isLiving, isBusy];
  const fits = wishes.map((wish) => rowsOf(all, wish)).find((rows) => rows.length <= room);
  return fits ?? rowsOf(all, isBusy).slice(0, Math.max(0, room));
}

function rowsOf(all: readonly Row[], isShown: (member: Member) => boolean): readonly Row[] {
  return all.filter((row) => (row.kind === "group" ? row.members.some(isShown) : isShown(row.member)));
}

function restText(hidden: readonly Member[]): string {
  const count = (what: string, is: (member: Member) => boolean): string[] => {
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

function branchOf(rows: readonly Row[], index: number): string {
  const { depth = 0 } = rows[index] ?? {};
  const rails = Array.from({ length: depth }, (_, level) => (goesOn(rows, index, level) ? "│ " : "  "));
  return `${rails.join("")}${goesOn(rows, index, depth) ? "├ " : "└ "}`;
}

/** Whether a later row hangs on the same rail. */
function goesOn(rows: readonly Row[], index: number, level: number): boolean {
  for (const { depth } of rows.slice(index + 1)) {
    if (depth < level) return false;
    if (depth === level) return true;
  }
  return false;
}

interface Placed {
  readonly tree: Tree;
  readonly drawing: Drawing;
  readonly branch: string;
}

function rowLine(row: Row, how: Placed): Segment[] {
  if (row.kind === "member") return memberLine(row.member, how);
  const cards = row.members.flatMap(({ card }) => card ?? []);
  return [
    { text: how.branch, style: "dim" },
    { text: groupText(cards, how.drawing.labels ?? english), style: "plain" },
  ];
}

interface Segment {
  readonly text: string;
  readonly style: "plain" | "name" | "good" | "wait" | "dim";
}

function memberLine(member: Member, { tree, drawing, branch }: Placed): Segment[] {
  const waits = tree.waitOf(member);
  const elapsed = isBusy(member) ? ` ${seconds(drawing.now - member.startedAt)}` : "";
  const result = isBusy(member) ? undefined : member.card?.result;
  const labels = drawing.labels ?? english;
  const state = waits === undefined ? statusLabel(result?.status ?? member.status, labels) : `waiting for ${waits}`;
  const name = workerLabel(member.card?.title ?? member.agentType, member.agentType, labels);
  const head: Segment[] = [
    { text: branch, style: "dim" },
    { text: member.id, style: "name" },
    { text: ` (${name}) `, style: "plain" },
    { text: `${state}${elapsed}`, style: waits === undefined && isBusy(member) ? "good" : "wait" },
  ];
  const left = drawing.width - head.reduce((sum, { text }) => sum + columnsOf(sanitiseLine(text)), 0);
  const numbers = numbersOf(member, left - MIN_TOOL_COLUMNS - 3);
  // A long command must not push what it costs from the screen.
  const room = Math.max(MIN_TOOL_COLUMNS, left - columnsOf(numbers) - 3);
  const told = doing([result?.summary ?? "", member.lastTool, member.intent], room);
  return [...head, { text: `${told}${numbers}`, style: "dim" }];
}

/** What it cost; how many tools it used only where that fits, too. */
function numbersOf({ spent }: Member, room: number): string {
  const { tools, tokens, costUsd } = spent;
  const count = tools > 0 ? ` · ${plural(tools, "tool")}` : "";
  const price = [
    tokens > 0 ? ` · ${tokens.toLocaleString("en-US")} tokens` : "",
    costUsd ? ` · $${costUsd.toFixed(4)}` : "",
  ].join("");
  return columnsOf(`${count}${price}`) <= room ? `${count}${price}` : price;
}

/** The first of these that there is, and those after it that still fit. */
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

const codes = { plain: "", name: "1", good: "32", wait: "33", dim: "2" } as const;

/** Foreign words cannot drive the terminal, and no line is wider than the screen, so that it can be drawn over. */
function paint(segments: readonly Segment[], { width, colour }: Drawing): string {
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
