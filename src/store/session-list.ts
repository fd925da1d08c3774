/**
 * The list of all sessions without reading each one's files: `session-list.json` in the home has the summaries of the last
 * time, with size and time of the files they are from. What has changed since is read again. The file is derived: when it
 * is missing, damaged or of another version, everything is read and it is written anew.
 *
 * Whoever writes a session appends to its log before `workspace.yaml`, and holds its lock until both are written. So a log
 * that is as it was when no lock was there has the same summary. Only a file that is edited by hand changes alone: all are
 * looked at in a home of up to 2,000 sessions, and a tenth of them each minute in a larger one.
 */
import { readFileSync, type Stats, statSync } from "node:fs";
import { isObject, parseJson } from "../lib/json.ts";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import { LOCK_FILE } from "./lock.ts";
import type { SessionSummary } from "./store.ts";
import { readSummary, summariseHead } from "./summary.ts";

export const SESSION_LIST_FILE = "session-list.json";
const VERSION = 1;
/** Files are looked at without the event loop, which is many times faster, in slices this long. */
const SLICE_MS = 8;
/** The file is written again when this many sessions had to be read: fewer cost less than writing it. */
const MIN_CHANGED = 32;

const ALL_LOOKED_AT = 2_000;
const PARTS = 10;
const PART_MS = 60_000;

interface Known {
  /** Size and time of the log. */
  readonly log: string;
  /** The same of `workspace.yaml`; undefined while a process had the session open, which may write it any moment. */
  readonly file: string | undefined;
  readonly summary: SessionSummary;
}

export interface FoundLog {
  readonly sessionId: string;
  readonly found: Stats;
}

export class SessionList {
  readonly #path: string;
  readonly #folder: string;
  readonly #disk: Disk;
  #known: Map<string, Known> | undefined;

  /** `folder`: of all sessions. */
  constructor(options: { readonly path: string; readonly folder: string; readonly disk: Disk }) {
    this.#path = options.path;
    this.#folder = options.folder;
    this.#disk = options.disk;
  }

  /** Summaries of these sessions, in this order. */
  async summaries(logs: readonly FoundLog[]): Promise<SessionSummary[]> {
    const known = this.#known ?? readKnown(this.#path);
    const now = new Map<string, Known>();
    const part = Math.floor(Date.now() / PART_MS);
    let changed = 0;
    let sliceEnd = performance.now() + SLICE_MS;
    for (const [index, { sessionId, found }] of logs.entries()) {
      const before = known.get(sessionId);
      const isLookedAt = logs.length <= ALL_LOOKED_AT || (index + part) % PARTS === 0;
      const isSame =
        before?.file !== undefined &&
        before.log === revisionOf(found) &&
        (!isLookedAt || before.file === this.#fileRevision(sessionId));
      if (!isSame) changed++;
      now.set(sessionId, isSame && before ? before : await this.#look(sessionId, found));
      if (performance.now() < sliceEnd) continue;
      await new Promise((resolve) => setImmediate(resolve));
      sliceEnd = performance.now() + SLICE_MS;
    }
    this.#known = now;
    // Without it, the next list is only slower.
    if (changed >= MIN_CHANGED) await replaceFile(this.#disk, this.#path, encode(now)).catch(() => undefined);
    return [...now.values()].map(({ summary }) => summary);
  }

  async #look(sessionId: string, found: Stats): Promise<Known> {
    const place = `${this.#folder}/${sessionId}`;
    const file = this.#fileRevision(sessionId);
    const summary =
      (await readSummary(`${place}/workspace.yaml`, sessionId)) ??
      summariseHead(`${place}/events.jsonl`, sessionId, found.mtime);
    // Looked for last: one that is taken after this writes the log before the summary.
    const isOpen = statSync(`${place}/${LOCK_FILE}`, { throwIfNoEntry: false }) !== undefined;
    return { log: revisionOf(found), file: isOpen ? undefined : file, summary };
  }

  #fileRevision(sessionId: string): string {
    return revisionOf(statSync(`${this.#folder}/${sessionId}/workspace.yaml`, { throwIfNoEntry: false }));
  }
}

const revisionOf = (found: Stats | undefined): string => (found ? `${found.size}-${found.mtimeMs}` : "none");

function encode(known: ReadonlyMap<string, Known>): string {
  const sessions = [...known.values()].map(({ log, file, summary }) => [log, file, summary]);
  return JSON.stringify({ version: VERSION, sessions });
}

function readKnown(path: string): Map<string, Known> {
  const known = new Map<string, Known>();
  try {
    const json = parseJson(readFileSync(path, "utf8"));
    if (!json.ok || !isObject(json.value) || json.value.version !== VERSION) return known;
    if (!Array.isArray(json.value.sessions)) return known;
    for (const [log, file, summary] of json.value.sessions as [string, string | null, SessionSummary][]) {
      if (isSummary(summary)) known.set(summary.sessionId, { log, file: file ?? undefined, summary });
    }
  } catch {
    // Missing, or of another shape: everything is read.
  }
  return known;
}

const isSummary = (value: unknown): value is SessionSummary =>
  isObject(value) &&
  typeof value.sessionId === "string" &&
  typeof value.cwd === "string" &&
  typeof value.createdAt === "string" &&
  typeof value.updatedAt === "string" &&
  typeof value.turns === "number";
