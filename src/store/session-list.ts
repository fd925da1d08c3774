/**
 * Lists all sessions without reading each one's files. `session-list.json` in the home has the summaries of the last
 * listing, with size and time of the files they come from. Only changed sessions are read again. The file is derived:
 * when it is missing, damaged or of another version, all sessions are read and it is rewritten.
 *
 * A writer appends to the log before it writes `workspace.yaml`, and holds the lock until both are written. So a log
 * that is unchanged since no lock was there has the same summary. Only an edit by hand changes `workspace.yaml` alone.
 * A home of up to 2,000 sessions checks all of them; a larger one checks a tenth each minute.
 */
import { readFileSync, type Stats, statSync } from "node:fs";
import { isObject, parseJson } from "../lib/json.ts";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import { LOCK_FILE } from "./lock-holder.ts";
import type { SessionSummary } from "./store.ts";
import { readSummary, summariseHead } from "./summary.ts";

export const SESSION_LIST_FILE = "session-list.json";
const VERSION = 1;
/** Files are checked synchronously, which is many times faster, in slices of this length. */
const SLICE_MS = 8;
/** The file is rewritten after this many sessions were read. For fewer, writing costs more than it saves. */
const MIN_CHANGED = 32;

const ALL_LOOKED_AT = 2_000;
const PARTS = 10;
const PART_MS = 60_000;

interface Known {
  /** Size and time of the log file. */
  readonly log: string;
  /** Size and time of `workspace.yaml`. `undefined` while a process had the session open and might write it. */
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

  /** `folder` is the parent of all session folders. */
  constructor(options: { readonly path: string; readonly folder: string; readonly disk: Disk }) {
    this.#path = options.path;
    this.#folder = options.folder;
    this.#disk = options.disk;
  }

  /** Returns the summaries of these sessions, in this order. */
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
    // Ignores a failure: the next listing is only slower.
    if (changed >= MIN_CHANGED) await replaceFile(this.#disk, this.#path, encode(now)).catch(() => undefined);
    return [...now.values()].map(({ summary }) => summary);
  }

  async #look(sessionId: string, found: Stats): Promise<Known> {
    const directory = `${this.#folder}/${sessionId}`;
    const file = this.#fileRevision(sessionId);
    const summary =
      (await readSummary(`${directory}/workspace.yaml`, sessionId)) ??
      summariseHead(`${directory}/events.jsonl`, sessionId, found.mtime);
    // The lock is checked last: a process that takes it later writes the log before the summary.
    const isOpen = statSync(`${directory}/${LOCK_FILE}`, { throwIfNoEntry: false }) !== undefined;
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
    // Missing or invalid: everything is read.
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
