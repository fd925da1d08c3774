/**
 * Shrinks a conversation without a model. Shortens the oldest large results first, then all results, then drops the
 * oldest turns. Marks show what is missing. User messages and every pair of call and result stay.
 */
import { firstCharacters } from "../lib/text.ts";
import type { Message, ToolMessage, UserMessage } from "../protocol/message.ts";
import { turnStart } from "./compact-cut.ts";
import { messageTokens } from "./compact-tokens.ts";

/** Maps a message to its replacement. */
export type Replacements = ReadonlyMap<Message, ToolMessage | "left out">;

const LARGE_CHARACTERS = 2_000;
const KEPT_CHARACTERS = 400;

/** Returns `before` with the replacements that bring the messages down to `maxTokens`. */
export function replacementsToFit(
  messages: readonly Message[],
  maxTokens: number,
  before: Replacements = new Map(),
): Replacements {
  const replaced = new Map(before);
  const shownTokens = (message: Message): number => {
    const instead = replaced.get(message);
    return instead === "left out" ? 0 : messageTokens(instead ?? message);
  };
  let excess = messages.reduce((sum, message) => sum + shownTokens(message), 0) - maxTokens;
  const replace = (message: Message, instead: ToolMessage | "left out"): void => {
    excess -= shownTokens(message);
    replaced.set(message, instead);
    excess += shownTokens(message);
  };
  const lastTurn = lastTurnOf(messages);
  const shorten = (candidates: readonly Message[], above: number): void => {
    for (const message of candidates) {
      if (excess <= 0) return;
      if (message.role === "tool" && !replaced.has(message) && message.content.length > above)
        replace(message, shortened(message));
    }
  };
  shorten(messages.slice(0, lastTurn), LARGE_CHARACTERS);
  shorten(messages, KEPT_CHARACTERS * 2);
  for (let index = 0; index < lastTurn && excess > 0; index++) {
    const message = messages[index];
    if (message?.role !== "assistant" && message?.role !== "tool") continue;
    // Drops a reply together with its results, which follow it in the list.
    do replace(messages[index] as Message, "left out");
    while (messages[index + 1]?.role === "tool" && ++index);
  }
  return replaced;
}

/** Returns the messages with their replacements, and a mark for each run of dropped ones. */
export function replacedMessages(messages: readonly Message[], replaced: Replacements): readonly Message[] {
  if (replaced.size === 0) return messages;
  const shown: Message[] = [];
  let missing = 0;
  const mark = (): void => {
    if (missing > 0) shown.push(leftOut(missing));
    missing = 0;
  };
  for (const message of messages) {
    const instead = replaced.get(message);
    if (instead === "left out") missing++;
    else {
      mark();
      shown.push(instead ?? message);
    }
  }
  mark();
  return shown;
}

function shortened(message: ToolMessage): ToolMessage {
  const { images: _, ...rest } = message;
  const removed = message.content.length - KEPT_CHARACTERS;
  const mark = `[${removed} more characters of this result were left out to make room; call the tool again if you need them]`;
  return { ...rest, content: `${firstCharacters(message.content, KEPT_CHARACTERS)}\n${mark}` };
}

function leftOut(count: number): UserMessage {
  return { role: "user", content: `[${count} earlier messages were left out here to make room.]` };
}

/** Returns the index of the last reply, or the number of messages if there is none. */
function lastTurnOf(messages: readonly Message[]): number {
  let end = messages.length;
  while (messages[end - 1]?.role === "user") end--;
  return end === 0 ? messages.length : turnStart(messages, end);
}
