/** The prompt for a consolidating agent: its contract, the board with its texts, and the evidence of a session. */

import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { type BoardRow, boardLimits } from "./board.ts";
import contract from "./consolidation.md";
import nearlyFull from "./consolidation-full.md";
import { mostDrops } from "./draft.ts";
import type { SessionEvidence } from "./evidence.ts";
import { boardItem, boardTable } from "./table.ts";

export function consolidationPrompt(rows: readonly BoardRow[], evidence: SessionEvidence): string {
  const parts = [
    contract.trim(),
    rows.length >= boardLimits.warnAt && warning(rows),
    wrapInTag("consolidation_board", {}, [boardTable(rows), ...rows.map(boardItem)].join("\n\n")),
    wrapInTag("session_turns", { session: evidence.sessionId }, turnsText(evidence)),
    evidence.checkpoint !== undefined && wrapInTag("session_checkpoint", {}, quoted(evidence.checkpoint)),
  ];
  return parts.filter(Boolean).join("\n\n");
}

function warning(rows: readonly BoardRow[]): string {
  const numbers: Record<string, number> = {
    rows: rows.length,
    capacity: boardLimits.rows,
    warnAt: boardLimits.warnAt,
    pruneTo: boardLimits.pruneTo,
    drops: mostDrops(rows.filter(({ src }) => src === "agent").length),
  };
  return nearlyFull.trim().replace(/\{(\w+)\}/g, (_, name: string) => String(numbers[name]));
}

/** Quotes the texts, so that only our tags name the speaker and no text can pose as the user's. */
function turnsText({ turns, leftOut }: SessionEvidence): string {
  const missing = leftOut > 0 ? [`(${leftOut} earlier turns are left out.)`] : [];
  const told = turns.flatMap(({ number, user, assistant }) => [
    wrapInTag("said_by_person", { turn: String(number) }, quoted(user)),
    wrapInTag("said_by_agent", { turn: String(number) }, quoted(assistant)),
  ]);
  return [...missing, ...(told.length > 0 ? told : ["(Nothing was said.)"])].join("\n\n");
}
