/**
 * Events as readable lines: `root user.message`, `call_task_1 tool.execution_start`. The assertions throw plain errors,
 * so they work in any test runner.
 */
import type { SessionEvent } from "../protocol/event.ts";
import { isEphemeral, isKnownType } from "../protocol/event-kind.ts";

/** The parts of an event that a story needs. */
export type StoryEvent = Pick<SessionEvent, "agentId" | "ephemeral"> & { readonly type: string };

export interface StoryOptions {
  /** Ephemeral events, such as deltas, are omitted unless this is "included". */
  readonly ephemeral?: "included" | "left out";
}

export function story(events: Iterable<StoryEvent>, options: StoryOptions = {}): string[] {
  return [...events].filter((event) => options.ephemeral === "included" || isKept(event)).map(line);
}

/** Returns the lines by agent, for concurrent agents whose events may interleave in any order. */
export function storyByAgent(events: Iterable<StoryEvent>, options: StoryOptions = {}): Record<string, string[]> {
  const told: Record<string, string[]> = {};
  for (const event of events) {
    if (options.ephemeral !== "included" && !isKept(event)) continue;
    const lines = told[agentOf(event)] ?? [];
    lines.push(event.type);
    told[agentOf(event)] = lines;
  }
  return told;
}

/** Expects exactly these lines. Throws with a diff. */
export function expectStory(
  events: Iterable<StoryEvent>,
  expected: readonly string[],
  options: StoryOptions = {},
): void {
  const actual = story(events, options);
  if (actual.length === expected.length && actual.every((text, index) => text === expected[index])) return;
  throw new Error(`The story differs (- expected, + happened):\n${difference(expected, actual).join("\n")}`);
}

/**
 * Expects these events in this order, with any others between them. A line without an agent (`tool.execution_start`),
 * or with `*` for it, matches any agent. Ephemeral events are included.
 */
export function expectOrder(events: Iterable<StoryEvent>, expected: readonly string[]): void {
  const actual = story(events, { ephemeral: "included" });
  let from = 0;
  for (const [index, wanted] of expected.entries()) {
    const found = actual.findIndex((text, position) => position >= from && matches(text, wanted));
    if (found === -1) {
      const earlier = actual.some((text) => matches(text, wanted));
      const after = index === 0 ? "" : ` after "${expected[index - 1]}"`;
      const reason = earlier ? `did not happen${after}, only before` : "never happened";
      const told = actual.map((text, position) => `${position === from - 1 ? ">" : " "} ${text}`);
      throw new Error(`"${wanted}" (${index + 1} of ${expected.length}) ${reason}. What happened:\n${told.join("\n")}`);
    }
    from = found + 1;
  }
}

/** Expects that none of these happened. Same patterns as `expectOrder`. */
export function expectNever(events: Iterable<StoryEvent>, unwanted: readonly string[]): void {
  const actual = story(events, { ephemeral: "included" });
  const bad = unwanted.filter((pattern) => actual.some((text) => matches(text, pattern)));
  if (bad.length > 0)
    throw new Error(`${bad.map((text) => `"${text}"`).join(", ")} happened:\n  ${actual.join("\n  ")}`);
}

/** Expects that every started tool call was completed once, and that none was completed without a start. */
export function expectPaired(events: Iterable<SessionEvent>): void {
  const open = new Set<string>();
  const problems: string[] = [];
  for (const event of events) {
    if (event.type === "tool.execution_start") {
      const { toolCallId } = event.data;
      if (open.has(toolCallId)) problems.push(`${toolCallId} started twice`);
      open.add(toolCallId);
    } else if (event.type === "tool.execution_complete" && !open.delete(event.data.toolCallId)) {
      problems.push(`${event.data.toolCallId} completed without a start`);
    }
  }
  problems.push(...[...open].map((toolCallId) => `${toolCallId} never completed`));
  if (problems.length > 0) throw new Error(`Tool calls do not pair up: ${problems.join("; ")}`);
}

const agentOf = (event: StoryEvent): string => event.agentId ?? "root";
const line = (event: StoryEvent): string => `${agentOf(event)} ${event.type}`;

function isKept(event: StoryEvent): boolean {
  return !(event.ephemeral ?? (isKnownType(event.type) && isEphemeral(event.type)));
}

function matches(actual: string, pattern: string): boolean {
  if (!pattern.includes(" ")) return actual.endsWith(` ${pattern}`);
  return pattern.startsWith("* ") ? actual.endsWith(pattern.slice(1)) : actual === pattern;
}

const MAX_DIFFERENCE_CELLS = 4_000_000;

/** Returns a diff along the longest common subsequence. For very long stories, only the first difference. */
function difference(expected: readonly string[], actual: readonly string[]): string[] {
  if (expected.length * actual.length > MAX_DIFFERENCE_CELLS) {
    const first = expected.findIndex((text, index) => text !== actual[index]);
    const position = first === -1 ? expected.length : first;
    return [`  (${position} equal lines)`, `- ${expected[position] ?? "(end)"}`, `+ ${actual[position] ?? "(end)"}`];
  }
  const common = commonLengths(expected, actual);
  const lines: string[] = [];
  let left = 0;
  let right = 0;
  while (left < expected.length || right < actual.length) {
    const skipLeft = common[left + 1]?.[right] ?? -1;
    const skipRight = common[left]?.[right + 1] ?? -1;
    if (left < expected.length && expected[left] === actual[right]) {
      lines.push(`  ${expected[left++]}`);
      right += 1;
    } else if (left < expected.length && skipLeft >= skipRight) lines.push(`- ${expected[left++]}`);
    else lines.push(`+ ${actual[right++]}`);
  }
  return lines;
}

/** `lengths[i][j]`: the number of lines that the rests from i and from j have in common. */
function commonLengths(expected: readonly string[], actual: readonly string[]): number[][] {
  const lengths = Array.from({ length: expected.length + 1 }, () => new Array<number>(actual.length + 1).fill(0));
  for (let i = expected.length - 1; i >= 0; i--) {
    for (let j = actual.length - 1; j >= 0; j--) {
      const row = lengths[i];
      if (!row) continue;
      const diagonal = (lengths[i + 1]?.[j + 1] ?? 0) + 1;
      row[j] = expected[i] === actual[j] ? diagonal : Math.max(lengths[i + 1]?.[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return lengths;
}
