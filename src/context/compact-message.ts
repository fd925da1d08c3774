/**
 * The first message of a conversation after a summary. The same event always gives the same text, live or read back.
 */
import { quoted, quotedInSummary, wrapInTag } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import leadIn from "./compact-lead-in.md";

/** The shares of the context window for the users' messages and the summary, and their bounds in characters. */
const SAID_SHARE = 0.1;
const MAX_SAID_CHARACTERS = 40_000;
const MIN_SAID_CHARACTERS = 2_000;
const MAX_MESSAGE_CHARACTERS = 4_000;
const SUMMARY_SHARE = 0.15;
const MAX_SUMMARY_CHARACTERS = 80_000;
const MIN_SUMMARY_CHARACTERS = 4_000;
const CHARACTERS_PER_TOKEN = 4;

export function beginning(what: {
  /** The users' messages before the summary. */
  readonly said: UserMessages;
  readonly summary: string;
  readonly tokenLimit: number | undefined;
}): string {
  const { said, summary, tokenLimit } = what;
  const earlier = boundedSayings(said, share(tokenLimit, SAID_SHARE, [MIN_SAID_CHARACTERS, MAX_SAID_CHARACTERS]));
  return [
    leadIn.trim(),
    ...earlier,
    // The sections are already quoted. This only prevents the summary from closing its own frame.
    wrapInTag("summary", {}, quoted(clip(summary, summaryCharacters(tokenLimit)))),
  ].join("\n\n");
}

/** Returns the maximum length of a summary for a window of this size. */
export function summaryCharacters(tokenLimit: number | undefined): number {
  return share(tokenLimit, SUMMARY_SHARE, [MIN_SUMMARY_CHARACTERS, MAX_SUMMARY_CHARACTERS]);
}

/** Returns one user message, cut to its maximum length. */
function saying(text: string): string {
  const left = text.length - MAX_MESSAGE_CHARACTERS;
  return left <= 0 ? text : clip(text, MAX_MESSAGE_CHARACTERS, ` … [${left} more characters left out]`);
}

/**
 * The user's messages before a summary, bounded: the first one, and as many of the newest as a summary can ever show.
 * The others are only counted.
 */
export interface UserMessages {
  readonly first?: string;
  /** Number of messages between `first` and `recent`. */
  readonly leftOut: number;
  /** Oldest first. */
  readonly recent: readonly string[];
}

export const noSayings: UserMessages = { leftOut: 0, recent: [] };

export function addSayings(before: UserMessages, texts: readonly string[]): UserMessages {
  const [first, ...others] = before.first === undefined ? texts.map(saying) : [before.first, ...texts.map(saying)];
  if (first === undefined) return before;
  const recent = [...before.recent, ...others];
  let characters = recent.reduce((sum, text) => sum + text.length, 0);
  let from = 0;
  // Drops messages that can never be shown again, because newer ones fill the largest space.
  for (; from < recent.length; from++) {
    characters -= recent[from]?.length ?? 0;
    if (characters <= MAX_SAID_CHARACTERS) break;
  }
  return { first, leftOut: before.leftOut + from, recent: recent.slice(from) };
}

/** Returns the first message and as many of the newest as fit. A note marks the omitted ones. */
function boundedSayings({ first, leftOut: before, recent }: UserMessages, maxCharacters: number): string[] {
  if (first === undefined) return [];
  let room = maxCharacters - first.length;
  let from = recent.length;
  while (from > 0 && (recent[from - 1]?.length ?? 0) <= room) {
    from--;
    room -= recent[from]?.length ?? 0;
  }
  const count = before + from;
  const leftOut = count === 0 ? [] : [`(${count} of the user's messages are omitted here to save space.)`];
  return [tagged(first), ...leftOut, ...recent.slice(from).map(tagged)];
}

const tagged = (text: string): string => wrapInTag("user_message", {}, quotedInSummary(text));

function share(tokenLimit: number | undefined, part: number, [least, most]: readonly [number, number]): number {
  if (tokenLimit === undefined || !Number.isFinite(tokenLimit)) return most;
  return Math.max(least, Math.min(most, Math.floor(tokenLimit * CHARACTERS_PER_TOKEN * part)));
}
