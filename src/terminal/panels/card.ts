/**
 * The card of a request that waits for a person. Text of others stands behind a bar on every row, so that it cannot look
 * like the interface; the keys are named outside of it.
 */

import { choiceLabel } from "../../view/waits.ts";
import { addressOf } from "../attention.ts";
import { safeCode, safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { keyRows, wrapPlain } from "../screen/width.ts";
import { wrapStyled } from "../screen/wrap.ts";
import { markdownText } from "../transcript/tool-cards.ts";
import type { CardState } from "./live-region.ts";
import { addressLines, requestLines } from "./request-lines.ts";

export function cardRows(
  card: CardState,
  { style, columns, maxRows }: { style: Style; columns: number; maxRows: number },
): string[] {
  const { item, total } = card;
  const url = addressOf(item);
  const form = item.request?.type === "elicitation.requested" ? item.request.data : undefined;
  const asking = [card.agentName, form?.elicitationSource && `MCP server ${form.elicitationSource}`];
  const who = asking.map((name) => (name === undefined ? "" : ` · ${safeLine(name)}`)).join("");
  const more = total > 1 ? ` · 1 of ${total}` : "";
  const blocks = card.blocked === undefined ? "" : ` · ${safeLine(card.blocked)}`;
  const head = style.yellow(
    style.bold(`▌ ${url === undefined ? (titles[item.kind] ?? item.kind) : "Address to open"}${who}${more}${blocks}`),
  );
  const width = Math.max(8, columns - 2);
  const body =
    item.kind === "plan"
      ? markdownText(item.text, style).flatMap((line) => (line === "" ? [] : wrapStyled(line, width)))
      : [...requestLines(item.text), ...addressLines(url)].flatMap((line) => wrapPlain(safeCode(line), width));
  const choices = item.choices.map((choice, index) => `${index + 1}  ${safeLine(choiceLabel(item, choice))}`);
  const told = card.isFocused || card.isArmed ? card.keys : `Ctrl+A to answer · ${card.keys}`;
  const keys = card.keys === "" ? [] : keyRows(told, Math.max(8, columns - 2));
  const room = Math.max(1, maxRows - 1 - keys.length - choices.length);
  const shown =
    body.length <= room
      ? body
      : [...body.slice(0, Math.max(1, room - 1)), `… ${body.length - room + 1} more rows: v shows all`];
  return [
    head,
    ...[...shown.map((row) => colourChange(row, item, style)), ...choices].map((row) => `${style.yellow("▌")} ${row}`),
    ...keys.map((row) => (card.isFocused || card.isArmed ? style.bold(`▌ ${row}`) : style.dim(`▌ ${row}`))),
  ];
}

/** Lines of a diff in their colours. */
function colourChange(row: string, { kind, request }: CardState["item"], style: Style): string {
  const isWrite = request?.type === "permission.requested" && request.data.permissionRequest.kind === "write";
  if (kind !== "permission" || !isWrite) return row;
  if (row.startsWith("+")) return style.green(row);
  return row.startsWith("-") ? style.red(row) : row;
}

const titles: Readonly<Record<string, string>> = {
  permission: "Permission",
  memory: "Memory proposal",
  question: "Question",
  plan: "Plan to approve",
  elicitation: "Form",
  sign_in: "Sign-in",
  limit: "Limit reached",
  model_switch: "Switch the model?",
};
