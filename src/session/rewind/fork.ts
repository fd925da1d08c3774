/** The content of a session's fork: the conversation up to an event, and the files that belong to it. */

import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { defined } from "../../lib/defined.ts";
import { parseJson } from "../../lib/json.ts";
import { filesInShared } from "../../lib/node/shared-folder.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { ForkCopy } from "../../store/fork-folder.ts";
import type { ForkedEvents } from "../../store/fork-log.ts";
import type { Scan, Scanned } from "../../store/log-scan.ts";

interface ForkRequest {
  readonly sessionId: string;
  readonly name: string | undefined;
  readonly now: string;
  newId(): string;
  /** The fork's note about its origin. */
  readonly message: string;
}

/** Facts about all events of a fork that must be known before the first one is written. */
export interface ForkFacts {
  /** The number of events that are copied or left out. The session may have more by the time they are written. */
  readonly count: number;
  /** The first message and the names, for the forked session's summary. */
  readonly heads: readonly SessionEvent[];
  readonly turns: number;
  /** Messages that are in the conversation. */
  readonly answered: ReadonlySet<string>;
  /** Messages to the main agent. File changes refer to them. */
  readonly turnIds: ReadonlySet<string>;
  readonly lastCheckpoint: number;
}

const FACT_TYPES = new Set<string>([
  "assistant.turn_start",
  "session.compaction_complete",
  "session.start",
  "troupe.session_named",
  "user.message",
]);

/** Collects the facts. Throws if the event does not exist or nothing precedes it. */
export async function forkFacts(scan: (request: Scan) => Promise<Scanned>, toEventId?: string): Promise<ForkFacts> {
  let facts = newFacts();
  const begin = (): ((event: SessionEvent) => void) => {
    facts = newFacts();
    return (event) => addFact(facts, event);
  };
  const { count, isFound } = await scan({ types: FACT_TYPES, begin, ...defined({ toEventId }) });
  if (!isFound) throw new TroupeError("usage", `Event ${toEventId} not found in this session.`);
  if (count === 0)
    throw new TroupeError("usage", "A session cannot be forked at its beginning: there is nothing before it.");
  return { count, ...facts };
}

const newFacts = () => ({
  heads: [] as SessionEvent[],
  turns: 0,
  answered: new Set<string>(),
  turnIds: new Set<string>(),
  lastCheckpoint: 0,
});

function addFact(facts: ReturnType<typeof newFacts>, event: SessionEvent): void {
  const { heads, answered, turnIds } = facts;
  if (event.type === "assistant.turn_start") facts.turns++;
  if (event.type === "session.compaction_complete")
    facts.lastCheckpoint = Math.max(facts.lastCheckpoint, event.data.checkpointNumber ?? 0);
  if (event.type === "session.start" || event.type === "troupe.session_named") heads.push(event);
  if (event.type !== "user.message") return;
  if (!heads.some(({ type }) => type === "user.message")) heads.push(event);
  const { interactionId } = event.data;
  if (interactionId === undefined) return;
  answered.add(interactionId);
  if (event.agentId === undefined) turnIds.add(interactionId);
}

/**
 * Returns the events of the fork. Pending messages and schedules stay only in the old session, so that they are not
 * executed twice. Events about the old log itself are left out too.
 */
export function forkedEvents(
  { sessionId, name, now, newId, message }: ForkRequest,
  { answered, count }: Pick<ForkFacts, "answered" | "count">,
): ForkedEvents {
  const envelope = { timestamp: now, parentId: null };
  const added: SessionEvent[] = [];
  if (name !== undefined) added.push({ ...envelope, id: newId(), type: "troupe.session_named", data: { name } });
  added.push({ ...envelope, id: newId(), type: "session.info", data: { infoType: "fork", message } });
  return {
    count,
    changedTypes: CHANGED,
    change(event) {
      const { type, data } = event;
      if (type === "session.start") return { ...event, data: { ...data, sessionId, startTime: now } };
      return type === "troupe.message_queued" && answered.has(data.messageId) ? event : undefined;
    },
    added,
  };
}

const CHANGED = new Set<string>([
  "session.start",
  "troupe.message_queued",
  "session.schedule_created",
  "session.schedule_cancelled",
  "troupe.rewound",
  "troupe.log_damage",
  "troupe.session_named",
]);

/** Returns the files of the session's folder that belong to these events. */
export async function forkedFiles(
  directory: string,
  { lastCheckpoint, turnIds }: Pick<ForkFacts, "lastCheckpoint" | "turnIds">,
): Promise<readonly ForkCopy[]> {
  const copies: ForkCopy[] = [];
  for (const path of await filesBelow(directory)) {
    const [top = "", second = ""] = path.split(sep);
    const number = /^(\d+)[^/]*\.md$/.exec(second)?.[1];
    if (COPIED.has(top)) copies.push({ path, kind: "own" });
    else if (path === "session.db") copies.push({ path, kind: "database" });
    else if (top !== "checkpoints") continue;
    else if (second === "objects" || second === "packs") copies.push({ path, kind: "shared" });
    else if (number !== undefined && Number(number) <= lastCheckpoint) copies.push({ path, kind: "own" });
    else if (second === "index.md") {
      copies.push({ path, kind: "own", content: await indexUpTo(join(directory, path), lastCheckpoint) });
    } else if (second === "changes.jsonl")
      copies.push({ path, kind: "own", content: await changesOf(join(directory, path), turnIds) });
  }
  return copies;
}

const COPIED = new Set(["files", "records", "research", "plan.md"]);
/** Worktrees and running commands belong only to the old session; a fork must not stop them. */
const NOT_COPIED =
  /^(?:worktrees|damaged|records\/shells-[^/]*)(?:\/|$)|^(?:files|records)\/shell-detached-[^/]*\.(?:pid|exit)$/;
const MAX_FILES = 50_000;
const MAX_BYTES = 1024 * 1024 * 1024;

/** Lists the files. Commands may write to these folders meanwhile, so links are not followed. */
async function filesBelow(directory: string): Promise<string[]> {
  const paths: string[] = [];
  let bytes = 0;
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    if (entry.isFile()) paths.push(entry.name);
    if (!entry.isDirectory() || NOT_COPIED.test(entry.name)) continue;
    const isLeftOut = (path: string): boolean => NOT_COPIED.test([entry.name, ...path.split(sep)].join("/"));
    const limits = { maxFiles: MAX_FILES + 1, leavesOut: isLeftOut };
    for (const { path, stat } of await filesInShared(join(directory, entry.name), limits)) {
      paths.push(join(entry.name, path));
      if (COPIED.has(entry.name)) bytes += stat.size;
    }
  }
  const files = paths.filter((path) => !path.endsWith(".tmp"));
  if (files.length > MAX_FILES) {
    throw new TroupeError("limit", `The session has more than ${MAX_FILES} files, too many to fork it.`);
  }
  if (bytes > MAX_BYTES) {
    const most = `${MAX_BYTES / 1024 / 1024} MiB`;
    throw new TroupeError("limit", `The files of the session have more than ${most}, too much to fork it.`, {
      hint: `Delete large files in ${join(directory, "files")}, then fork again.`,
    });
  }
  return files;
}

/** Returns the lines for changes made while these messages were answered. */
async function changesOf(path: string, turns: ReadonlySet<string>): Promise<string> {
  const seqs = new Set<unknown>();
  const lines = (await readFile(path, "utf8").catch(() => "")).split("\n").filter((line) => {
    const json = parseJson(line);
    const { kind, turn, seq } = (json.ok ? json.value : {}) as { kind?: unknown; turn?: unknown; seq?: unknown };
    if (kind === "undone") return true;
    if (kind === "settled") return seqs.has(seq);
    if (typeof turn !== "string" || !turns.has(turn)) return false;
    seqs.add(seq);
    return true;
  });
  return lines.map((line) => `${line}\n`).join("");
}

/** Returns the index with the rows up to this checkpoint. Other lines are kept. */
async function indexUpTo(path: string, lastCheckpoint: number): Promise<string> {
  const lines = (await readFile(path, "utf8").catch(() => "")).split("\n");
  return lines.filter((line) => Number(/^\| (\d+) \|/.exec(line)?.[1] ?? 0) <= lastCheckpoint).join("\n");
}
