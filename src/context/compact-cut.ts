/** Where a conversation may be cut: never between a call and its result. */
import type { Message } from "../protocol/message.ts";

export interface CutRules {
  /** How much of the newest turns stays as it is. */
  readonly tailTokens: number;
  /** As much for the last turn alone, which the model may not have seen yet. */
  readonly lastTurnTokens: number;
  isOpen(toolCallId: string): boolean;
}

/**
 * How many messages, from the first, are to be summarised. Messages of the user that nobody has answered stay, and so
 * do calls that wait for their results.
 */
export function chooseCut(messages: readonly Message[], sizes: readonly number[], rules: CutRules): number {
  let cut = messages.length;
  while (messages[cut - 1]?.role === "user") cut--;
  let kept = 0;
  let turns = 0;
  while (cut > 0) {
    const start = turnStart(messages, cut);
    const size = sizes.slice(start, cut).reduce((sum, tokens) => sum + tokens, 0);
    const isFirst = turns === 0 && messages[start]?.role === "assistant";
    if (kept + size > (isFirst ? Math.max(rules.lastTurnTokens, rules.tailTokens) : rules.tailTokens)) break;
    kept += size;
    cut = start;
    if (messages[start]?.role === "assistant") turns++;
  }
  return validCut(messages, cut, rules.isOpen);
}

/** The largest cut up to the wanted one that parts no call from its result. */
export function validCut(messages: readonly Message[], wanted: number, isOpen: CutRules["isOpen"]): number {
  const within = Number.isFinite(wanted) ? Math.max(0, Math.min(Math.floor(wanted), messages.length)) : 0;
  const cut = turnStart(messages, within + 1);
  const open = messages.findIndex(
    (message) => message.role === "assistant" && message.calls.some(({ toolCallId }) => isOpen(toolCallId)),
  );
  return open === -1 ? Math.min(cut, within) : Math.min(cut, open);
}

/** The start of the message before `end`, together with the reply whose results it is among. */
export function turnStart(messages: readonly Message[], end: number): number {
  let start = end - 1;
  while (start > 0 && messages[start]?.role === "tool") start--;
  return start;
}
