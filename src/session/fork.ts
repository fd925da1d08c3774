/** What a fork of a session has: the conversation up to a place, and the files that belong to it. */
import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { parseJson } from "../lib/json.ts";
import { filesInShared } from "../lib/node/shared-folder.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { ForkCopy } from "../store/fork-folder.ts";
import { viewUpTo } from "../store/rewound.ts";
import { turnsIn } from "./rewind-points.ts";

interface ForkWish {
  readonly sessionId: string;
  readonly name: string | undefined;
  /** The first event that it does not have. */
  readonly toEventId: string | undefined;
  readonly now: string;
  newId(): string;
  /** What the fork says of where it is from. */
  readonly message: string;
}

/**
 * The events of the fork. What waits in the old session (messages, schedules) waits only there, or it would be done
 * twice; so does what is about the old log as such.
 */
export function forkedEvents(view: readonly SessionEvent[], wish: ForkWish): readonly SessionEvent[] {
  const { sessionId, name, toEventId, now } = wish;
  const kept = toEventId === undefined ? view : viewUpTo(view, toEventId);
  if (!kept) throw new TroupeError("usage", `Event ${toEventId} not found in this session.`);
  if (kept.length === 0) throw new TroupeError("usage", "There is nothing before the beginning of a session to fork.");
  const answered = new Set(
    kept.flatMap((event) => (event.type === "user.message" ? (event.data.interactionId ?? []) : [])),
  );
  const copied = kept.flatMap((event): SessionEvent[] => {
    if (event.type === "session.start") return [{ ...event, data: { ...event.data, sessionId, startTime: now } }];
    if (event.type === "troupe.message_queued") return answered.has(event.data.messageId) ? [event] : [];
    return LEFT_BEHIND.has(event.type) ? [] : [event];
  });
  const envelope = { timestamp: now, parentId: null };
  const said: SessionEvent[] = [
    { ...envelope, id: wish.newId(), type: "session.info", data: { infoType: "fork", message: wish.message } },
  ];
  if (name !== undefined) said.unshift({ ...envelope, id: wish.newId(), type: "troupe.session_named", data: { name } });
  return chained([...copied, ...said]);
}

const LEFT_BEHIND = new Set<string>([
  "session.schedule_created",
  "session.schedule_cancelled",
  "troupe.rewound",
  "troupe.log_damage",
  "troupe.session_named",
]);

function chained(events: readonly SessionEvent[]): SessionEvent[] {
  return events.map((event, index) => ({ ...event, parentId: events[index - 1]?.id ?? null }));
}

/** What of the session's folder the fork has too, as far as it belongs to these events. */
export async function forkedFiles(directory: string, events: readonly SessionEvent[]): Promise<readonly ForkCopy[]> {
  const copies: ForkCopy[] = [];
  const lastCheckpoint = events.reduce(
    (most, event) =>
      event.type === "session.compaction_complete" ? Math.max(most, event.data.checkpointNumber ?? 0) : most,
    0,
  );
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
      copies.push({ path, kind: "own", content: await changesOf(join(directory, path), events) });
  }
  return copies;
}

const COPIED = new Set(["files", "records", "research", "plan.md"]);
/** Work trees and commands that run belong to the old session alone; a fork must not stop them. */
const NOT_COPIED =
  /^(?:worktrees|damaged|records\/shells-[^/]*)(?:\/|$)|^(?:files|records)\/shell-detached-[^/]*\.(?:pid|exit)$/;
const MAX_FILES = 50_000;
const MAX_BYTES = 1024 * 1024 * 1024;

/** Commands write to some of these folders meanwhile, so links are not followed. */
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

/** Only what was changed while these messages were answered, and what was noted of that. */
async function changesOf(path: string, events: readonly SessionEvent[]): Promise<string> {
  const turns = turnsIn(events);
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

/** The rows of checkpoints up to this one; what is no row stays. */
async function indexUpTo(path: string, lastCheckpoint: number): Promise<string> {
  const lines = (await readFile(path, "utf8").catch(() => "")).split("\n");
  return lines.filter((line) => Number(/^\| (\d+) \|/.exec(line)?.[1] ?? 0) <= lastCheckpoint).join("\n");
}
