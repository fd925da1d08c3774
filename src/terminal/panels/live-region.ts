/**
 * The live region: a pure function of the view and the state of the prompt. From top to bottom: the reply being written,
 * running calls, agents, the card that needs an answer, the queue, suggestions, the status line, and the prompt last.
 */
import type { AgentView, AttentionItem, View } from "../../view/view.ts";
import type { LiveRegion } from "../screen/frame.ts";
import { safeCode, safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { clipRow, widthOf, wrapPlain } from "../screen/width.ts";
import { titleOf } from "../transcript/tool-cards.ts";
import { cardRows } from "./card.ts";
import { progressRows } from "./progress.ts";
import { agentStrip } from "./strip.ts";

interface PromptState {
  /** Stands before the draft: `›`, or what is being answered. */
  readonly label: string;
  render(columns: number, maxRows: number): { rows: string[]; caret: { row: number; column: number } };
}

export interface UiState {
  readonly prompt: PromptState;
  readonly popup: readonly { readonly label: string; readonly detail: string }[];
  readonly selected: number;
  readonly card: CardState | undefined;
  /** Left and right part of the status line. */
  readonly status: { readonly left: string; readonly right: string };
  /** A word on what just happened; replaces the right part of the status line. */
  readonly hint: string | undefined;
}

export interface CardState {
  readonly item: AttentionItem;
  readonly total: number;
  /** Single keys decide. */
  readonly isArmed: boolean;
  readonly isFocused: boolean;
  readonly keys: string;
  readonly agentName: string | undefined;
  readonly blocked: string | undefined;
}

export interface LiveRegionInput {
  readonly view: View | undefined;
  readonly ui: UiState;
  readonly style: Style;
  readonly size: { readonly columns: number; readonly rows: number };
  readonly now: number;
}

const MAX_TAIL_ROWS = 6;
const MAX_TOOL_ROWS = 3;
const MAX_QUEUE_ROWS = 3;
const MAX_POPUP_ROWS = 8;
const MAX_LABEL = 36;
const MIN_ROWS_FOR_GAP = 16;
const SEPARATOR = " · ";

export function liveRegion(input: LiveRegionInput): LiveRegion {
  const { view, ui, style, size } = input;
  const columns = Math.max(10, size.columns - 1);
  const most = Math.max(2, Math.min(size.rows - 1, Math.floor(size.rows / 2)));
  const prompt = promptRows(ui.prompt, {
    columns,
    maxRows: Math.max(1, Math.min(most - 1, Math.floor(size.rows * 0.3))),
  });
  let left = most - prompt.rows.length - 1;
  /** Parts in the order of their importance, so that a small screen keeps what matters. */
  const take = (rows: readonly string[], keep: "head" | "tail" = "head"): readonly string[] => {
    const shown = keep === "head" ? rows.slice(0, Math.max(0, left)) : rows.slice(Math.max(0, rows.length - left));
    left -= shown.length;
    return shown;
  };
  const popup = take(popupRows(ui, style));
  const queued = view ? queueRows(view, style) : [];
  const strip = view ? agentStrip(view, { style, columns, now: input.now }) : [];
  // A long card leaves a row each for the queue and the agents.
  const others = Math.min(1, queued.length) + Math.min(1, strip.length);
  const card = take(ui.card ? cardRows(ui.card, { style, columns, maxRows: Math.max(3, left - others) }) : []);
  const queue = take(queued.slice(-Math.max(1, left - Math.min(1, strip.length))));
  const agents = take(strip);
  const progress = take(view ? progressRows(view, style) : []);
  const tools = take(view ? toolRows(view.main, { style, now: input.now }) : []);
  const tail = take(view ? tailRows(view.main, { style, columns }) : [], "tail");
  const parts = [...tail, ...tools, ...progress, ...agents, ...card, ...queue, ...popup];
  // An empty row sets the region apart from the text above it, where there is room.
  const gap = size.rows >= MIN_ROWS_FOR_GAP && left > 0 ? [""] : [];
  const above = [...gap, ...parts, statusRow(ui, style, columns)];
  return {
    rows: [...above, ...prompt.rows],
    caret: { row: above.length + prompt.caret.row, column: prompt.caret.column },
  };
}

function promptRows(prompt: PromptState, size: { columns: number; maxRows: number }) {
  const prefix = `${prompt.label} `;
  const indent = widthOf(prefix);
  const { rows, caret } = prompt.render(Math.max(4, size.columns - indent), size.maxRows);
  const shown = rows.length === 0 ? [""] : rows;
  return {
    rows: shown.map((row, index) => `${index === 0 ? prefix : " ".repeat(indent)}${row}`.trimEnd()),
    caret: { row: caret.row, column: caret.column + indent },
  };
}

function statusRow({ status, hint }: UiState, style: Style, columns: number): string {
  const roomFor = (text: string, left = status.left): number => columns - widthOf(left) - widthOf(text);
  // A hint that does not fit beside the state is shown alone: it is gone in a moment.
  if (hint !== undefined && roomFor(hint) < SEPARATOR.length) return style.dim(hint);
  const [first = ""] = status.right.split(SEPARATOR);
  const right = hint ?? (roomFor(status.right) < SEPARATOR.length ? first : status.right);
  // Facts after the mode are left out, the current work last, if the effect of the next Esc does not fit.
  const parts = status.left.split(SEPARATOR);
  while (parts.length > 1 && roomFor(right, parts.join(SEPARATOR)) < SEPARATOR.length) parts.splice(1, 1);
  return style.dim([parts.join(SEPARATOR), right].filter((part) => part !== "").join(SEPARATOR));
}

function popupRows({ popup, selected }: UiState, style: Style): string[] {
  const from = Math.max(0, Math.min(selected - MAX_POPUP_ROWS + 2, popup.length - MAX_POPUP_ROWS));
  const shown = popup.slice(from, from + MAX_POPUP_ROWS);
  const width = Math.min(MAX_LABEL, Math.max(0, ...shown.map(({ label }) => widthOf(safeLine(label)))));
  return shown.map(({ label, detail }, index) => {
    const isSelected = from + index === selected;
    const name = clipRow(safeLine(label), width);
    const row = `${isSelected ? "▸" : " "} ${name}${" ".repeat(Math.max(0, width - widthOf(name)))}  ${style.dim(safeLine(detail))}`;
    return isSelected ? style.bold(row) : row;
  });
}

function queueRows({ queue }: View, style: Style): string[] {
  const waiting = queue.filter(({ agentId }) => agentId === undefined);
  const shown = waiting.slice(-MAX_QUEUE_ROWS);
  const more = waiting.length - shown.length;
  return [
    ...(more > 0 ? [style.dim(`  … ${more} more queued`)] : []),
    ...shown.map(({ text, mode }) =>
      style.dim(`  ${mode === "immediate" ? "steering" : "queued"}: ${safeLine(text).slice(0, 200)}`),
    ),
  ];
}

function toolRows({ tools }: AgentView, { style, now }: { style: Style; now: number }): string[] {
  const running = [...tools.values()];
  return running.slice(-MAX_TOOL_ROWS).map((card) => {
    const seconds = Math.max(0, Math.floor((now - card.startedAt) / 1000));
    const progress = card.progress === undefined ? "" : ` · ${safeLine(card.progress)}`;
    const waits = card.waitsFor === undefined ? "" : ` · waits for ${safeLine(card.waitsFor)}`;
    return `${style.yellow("○")} ${titleOf(card)}${style.dim(`${seconds >= 1 ? ` ${seconds} s` : ""}${progress}${waits}`)}`;
  });
}

/** The unfinished part of the reply, or of the thoughts before it. */
function tailRows({ streaming }: AgentView, { style, columns }: { style: Style; columns: number }): string[] {
  if (!streaming) return [];
  const { tail, reasoning, call } = streaming;
  if (tail) {
    const lines = tail.text.split("\n").slice(-MAX_TAIL_ROWS);
    return lines.flatMap((line) => wrapPlain(safeCode(line), columns)).slice(-MAX_TAIL_ROWS);
  }
  if (call) return [style.dim(`writes a call of ${safeLine(call.name)} (${call.characters} characters)`)];
  if (reasoning !== "" && !streaming.isReasoningDrained) {
    return wrapPlain(safeLine(reasoning.slice(-400)), columns)
      .slice(-2)
      .map(style.dim);
  }
  return [];
}
