/** The memory section of the main agent's prompt: accepted facts of this folder, most useful first, quoted as data. */

import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import { type Fact, isCurrent } from "./memory.ts";
import introduction from "./section.md";
import serviceIntroduction from "./service-section.md";

export interface MemorySection {
  /** Empty if there are no facts. */
  readonly text: string;
  readonly ids: readonly string[];
  /** Number of facts, including those that did not fit. */
  readonly count: number;
}

export const MAX_SECTION_BYTES = 4096;
const TAG = "memories";
const MAX_CITATION_CHARACTERS = 160;
const SHORTEST_LINE_BYTES = 60;
/** Caps the score for uses: frequent use does not make a fact truer. */
const MAX_USES_COUNTED = 8;
const FRESH_MS = 30 * 86_400_000;

export function memorySection(
  facts: readonly Fact[],
  here: { readonly spaceKeys: readonly string[]; readonly now: number },
): MemorySection {
  const tellable = facts
    .filter((fact) => fact.status === "accepted" && here.spaceKeys.includes(fact.place) && isCurrent(fact, here.now))
    .map((fact) => ({ fact, score: usefulness(fact, here.now) }))
    .sort((one, other) => other.score - one.score || youngerFirst(one.fact, other.fact))
    .map(({ fact }) => fact);
  const ids: string[] = [];
  const lines: string[] = [];
  let room = MAX_SECTION_BYTES - byteLength(sectionText([], tellable.length)) - 1;
  for (const fact of tellable) {
    if (room < SHORTEST_LINE_BYTES) break;
    const line = lineOf(fact);
    const bytes = byteLength(line) + 1;
    if (bytes > room) continue;
    room -= bytes;
    lines.push(line);
    ids.push(fact.id);
  }
  const text = lines.length === 0 ? "" : sectionText(lines, tellable.length - lines.length);
  return { text, ids, count: tellable.length };
}

/** Returns the section for the text of a memory service, which is untrusted. */
export function serviceSection(text: string): string {
  const whole = boundedSection(text, MAX_SECTION_BYTES);
  const over = byteLength(whole) - MAX_SECTION_BYTES;
  return over <= 0 ? whole : boundedSection(text, MAX_SECTION_BYTES - over);
}

function boundedSection(text: string, maxBytes: number): string {
  const bytes = Buffer.from(quoted(text));
  const kept = bytes.length <= maxBytes ? bytes : bytes.subarray(0, maxBytes);
  const whole = new TextDecoder().decode(kept).replace(/\ufffd+$/, "");
  return wrapInTag(TAG, {}, `${serviceIntroduction.trim()}\n\n${whole}`);
}

function sectionText(lines: readonly string[], left: number): string {
  const rest = left > 0 ? [`(${left} more did not fit here.)`] : [];
  return wrapInTag(TAG, {}, [introduction.trim(), "", ...lines, ...rest].join("\n"));
}

function lineOf(fact: Fact): string {
  const { votes } = fact;
  const about = [
    fact.scope === "user" ? "about the user" : "about this repository",
    `${fact.author === "import" ? "imported" : `by ${fact.author}`} ${fact.createdAt.slice(0, 10)}`,
    ...(votes.up + votes.down > 0 ? [`votes +${votes.up} -${votes.down}`] : []),
    ...(votes.down > votes.up ? ["disputed"] : []),
  ].join(", ");
  const cited = fact.citations === "" ? "" : ` Cites: ${asData(clip(fact.citations, MAX_CITATION_CHARACTERS))}`;
  return `- ${asData(fact.subject)}: ${asData(fact.fact)} (${about})${cited}`;
}

/** Quotes a text on one line. No tag can start in it. */
const asData = (text: string): string => quoted(JSON.stringify(text));

function youngerFirst(one: Fact, other: Fact): number {
  return other.createdAt.localeCompare(one.createdAt) || one.id.localeCompare(other.id);
}

function usefulness({ votes, uses, author, createdAt, lastUsedAt }: Fact, now: number): number {
  const age = now - Date.parse(lastUsedAt ?? createdAt);
  const fresh = age < FRESH_MS ? 1 : 0;
  return 2 * (votes.up - votes.down) + (author === "person" ? 2 : 0) + Math.min(uses, MAX_USES_COUNTED) / 8 + fresh;
}

const byteLength = (text: string): number => Buffer.byteLength(text);
