/**
 * Pages of worker results. A tool result above the session's size limit would be moved to a file, so a long result is
 * split here: `subagents_run` returns an overview, and `subagents_read` returns one worker's items page by page.
 */
import { defined } from "../../lib/defined.ts";
import { cutText, type Submission, type WorkerResult } from "./submission.ts";

export const RESULT_PARTS = [
  "summary",
  "findings",
  "artifacts",
  "steps",
  "recommendedNextActions",
  "criteria",
] as const;
type ResultPart = (typeof RESULT_PARTS)[number];

/** Below the limit of 20,480 bytes above which a session moves tool results to a file. */
const WHOLE_BYTES = 20_000;
const OVERVIEW_BYTES = 18_000;
const PAGE_BYTES = 16_000;
/** Code points of one item that is longer than a page. JSON needs at most four bytes for each. */
const PIECE_CODE_POINTS = 4000;
const OVERVIEW_SUMMARY = 500;

export interface PagePosition {
  readonly part: ResultPart;
  /** Index of the first item, from 0. */
  readonly from: number;
  /** Code points of that item to skip. Used only for an item that is longer than a page. */
  readonly offset?: number;
}

export interface ResultPage extends PagePosition {
  /** Items in this part. */
  readonly of: number;
  readonly items: readonly unknown[];
  /** A piece of the JSON of one item that is longer than a page. */
  readonly piece?: string;
  /** Absent on the last page of the part. */
  readonly next?: PagePosition;
}

/**
 * Returns as many items of one part as fit, in order. For an item that is longer than a page, returns a piece of it.
 */
export function pageOf(result: Submission, position: PagePosition): ResultPage {
  const { part, from } = position;
  const all = itemsOf(result, part);
  const items = fitting(all.slice(from), PAGE_BYTES);
  const end = from + items.length;
  if (items.length === 0 && end < all.length) return pieceOf(all[from], position, all.length);
  return { part, from, of: all.length, items, ...(end < all.length && { next: { part, from: end } }) };
}

function fitting(items: readonly unknown[], maxBytes: number): readonly unknown[] {
  let bytes = 0;
  const tooMany = items.findIndex((item) => {
    bytes += bytesOf(item) + 1;
    return bytes > maxBytes;
  });
  return tooMany < 0 ? items : items.slice(0, tooMany);
}

function pieceOf(item: unknown, { part, from, offset = 0 }: PagePosition, of: number): ResultPage {
  const points = Array.from(JSON.stringify(item));
  const end = offset + PIECE_CODE_POINTS;
  const next = end < points.length ? { part, from, offset: end } : from + 1 < of ? { part, from: from + 1 } : undefined;
  return {
    part,
    from,
    offset,
    of,
    items: [],
    piece: points.slice(offset, end).join(""),
    ...defined({ next }),
  };
}

/**
 * Returns the results as JSON below the session's size limit: all of them if they fit. Otherwise each worker's status,
 * summary and first findings, with the positions where reading continues.
 */
export function resultText(results: readonly WorkerResult[]): string {
  const whole = JSON.stringify({ agents: results });
  if (Buffer.byteLength(whole) <= WHOLE_BYTES) return whole;
  const heads = results.map(headOf);
  const share = Math.floor((OVERVIEW_BYTES - bytesOf(heads)) / results.length);
  const agents = results.map((result, index) => {
    const findings = fitting(result.findings, share);
    const of = result.findings.length;
    const unread = [
      ...(result.summary === heads[index]?.summary ? [] : [{ part: "summary", from: 0, of: 1 }]),
      ...(findings.length < of ? [{ part: "findings", from: findings.length, of }] : []),
      ...LATER_PARTS.flatMap((part) => {
        const { length = 0 } = result[part] ?? [];
        return length > 0 ? [{ part, from: 0, of: length }] : [];
      }),
    ];
    return { ...heads[index], findings, unread };
  });
  return JSON.stringify({ agents, note: MORE });
}

const LATER_PARTS = ["artifacts", "steps", "recommendedNextActions", "criteria"] as const;
const MORE =
  "Too long for one result. Each worker lists under `unread` what is not shown. Read it with subagents_read: agent_id is the worker's agentId, or its id if it has none.";

/** Returns the overview of a result; of the criteria it has the numbers of those not met. */
function headOf(result: WorkerResult) {
  const { summary, findings: _, artifacts: _a, steps: _s, recommendedNextActions: _r, criteria, ...head } = result;
  const unmet = criteria?.flatMap(({ met }, index) => (met ? [] : [index + 1]));
  return { ...head, summary: cutText(summary, OVERVIEW_SUMMARY), ...defined({ criteriaNotMet: unmet }) };
}

function itemsOf(result: Submission, part: ResultPart): readonly unknown[] {
  return part === "summary" ? [result.summary] : (result[part] ?? []);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
