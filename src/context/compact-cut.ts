/** Chooses how many messages to summarise. Never separates a call from its result. */
import type { Message } from "../protocol/message.ts";

export interface CutRules {
  /** Size of the newest turns that are left unchanged. */
  readonly tailTokens: number;
  /** The same limit for the last turn alone, which the model may not have seen yet. */
  readonly lastTurnTokens: number;
  isOpen(toolCallId: string): boolean;
}

/**
 * Returns how many messages, from the first, to summarise. Unanswered user messages and calls without results are not
 * included.
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

/** Returns the largest cut up to `wanted` that separates no call from its result. */
export function validCut(messages: readonly Message[], wanted: number, isOpen: CutRules["isOpen"]): number {
  const within = Number.isFinite(wanted) ? Math.max(0, Math.min(Math.floor(wanted), messages.length)) : 0;
  const cut = turnStart(messages, within + 1);
  const open = messages.findIndex(
    (message) => message.role === "assistant" && message.calls.some(({ toolCallId }) => isOpen(toolCallId)),
  );
  return open === -1 ? Math.min(cut, within) : Math.min(cut, open);
}

/** Returns the start of the message before `end`. For a tool result, that is the reply with its call. */
export function turnStart(messages: readonly Message[], end: number): number {
  let start = end - 1;
  while (start > 0 && messages[start]?.role === "tool") start--;
  return start;
}
