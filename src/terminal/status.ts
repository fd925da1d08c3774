/** The status line: mode, model, context, cost, and what the next Esc does. */
import type { View } from "../view/view.ts";
import { safeLine } from "./screen/safe.ts";
import { tokensText } from "./transcript/block-lines.ts";

export interface EscState {
  readonly isPopupOpen: boolean;
  readonly isElsewhere: boolean;
  readonly isCardFocused: boolean;
  readonly isBusy: boolean;
  readonly hasDraft: boolean;
  readonly isWithoutSession: boolean;
  /** The session is being opened. */
  readonly isStarting: boolean;
}

/** Describes the effect of the next Esc. Esc never stops an agent in the background. */
export function escText(state: EscState): string {
  const { isPopupOpen, isElsewhere, isCardFocused, isBusy, hasDraft } = state;
  if (isPopupOpen) return "Esc closes the list";
  if (isElsewhere) return "Esc goes back to the prompt";
  if (isCardFocused) return "Esc leaves the card";
  if (isBusy) return "Esc interrupts";
  if (state.isWithoutSession) return "Enter tries again · Ctrl+D leaves";
  if (hasDraft) return "Esc Esc clears";
  return state.isStarting ? "? keys" : "Esc Esc rewinds · ? keys";
}

export interface StateFacts {
  readonly isBusy: boolean;
  readonly now: number;
  /** The mode of the vim keys, if they are on. */
  readonly vim: string | undefined;
  readonly isWithoutSession: boolean;
  readonly isAsking: boolean;
}

export function statusLeft(view: View | undefined, facts: StateFacts): string {
  const state = facts.isWithoutSession ? "no session" : stateText(view, facts);
  return facts.vim === undefined ? state : `${facts.vim} · ${state}`;
}

function stateText(view: View | undefined, { isBusy, now, isAsking }: StateFacts): string {
  if (!view) return isAsking ? "waits for your answer" : "starting";
  const { session, main } = view;
  const parts: string[] = [session.mode];
  if (session.model !== undefined) parts.push(safeLine(session.model).slice(0, 40));
  const { context } = main;
  if (context && context.tokenLimit > 0) {
    parts.push(
      `${Math.round((100 * context.currentTokens) / context.tokenLimit)}% of ${tokensText(context.tokenLimit)}`,
    );
  }
  const { costUsd, isCostKnown } = main.subtree;
  if (costUsd > 0) parts.push(`$${costUsd.toFixed(2)}${isCostKnown ? "" : "+"}`);
  if (isBusy) parts.push(busyText(view, now));
  return parts.join(" · ");
}

/** How long the answer has been running, and what it waits for. */
function busyText({ main }: View, now: number): string {
  const seconds = Math.max(0, Math.floor((now - main.startedAt) / 1000));
  if (main.compactingSince !== undefined) return `compacting ${seconds} s`;
  if (!main.modelWait) return `working ${seconds} s`;
  const { until, reason } = main.modelWait;
  const left = until === undefined ? "" : ` for ${Math.max(0, Math.ceil((until - now) / 1000))} s`;
  return `waits${left}: ${safeLine(reason).slice(0, 60)}`;
}
