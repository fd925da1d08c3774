/** The model request for a summary. */
import { quotedInSummary, wrapInTag } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import type { Message } from "../protocol/message.ts";
import prompt from "./compact-prompt.md";
import { replacedMessages, replacementsToFit } from "./compact-shorten.ts";

const MAX_FOCUS_CHARACTERS = 2_000;

/**
 * Returns the conversation followed by the request for a summary. The messages stay unchanged so that the provider's
 * cache applies. If they do not fit, results are shortened and old turns are dropped.
 */
export function summaryRequest(
  messages: readonly Message[],
  options: { readonly maxTokens: number; readonly focus?: string | undefined },
): readonly Message[] {
  const { maxTokens, focus = "" } = options;
  const shown = replacedMessages(messages, replacementsToFit(messages, maxTokens));
  return [...shown, { role: "user", content: summaryPrompt(focus.trim()) }];
}

function summaryPrompt(focus: string): string {
  if (focus === "") return prompt.trim();
  const wanted = `The user wants this above all to be kept:\n${wrapInTag("focus", {}, quotedInSummary(clip(focus, MAX_FOCUS_CHARACTERS)))}`;
  return `${prompt.trim()}\n\n${wanted}`;
}
