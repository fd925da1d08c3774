/**
 * Loads the events that a session needs from its log: from a snapshot and the lines after it, or from the whole log.
 */
import { statSync } from "node:fs";
import type { SessionEvent } from "../../protocol/event.ts";
import type { LogPaths } from "../access.ts";
import { type LogContent, readLog } from "./read-log.ts";
import { visibleEvents } from "./rewound.ts";
import { minLogBytes, type Prefix, readSnapshot, type Snapshot, type SnapshotRules } from "./snapshot.ts";

export interface LoadedLog extends Snapshot {
  /** The end of the file. Its `events` and `damage` are empty or partial. */
  readonly content: LogContent;
  /** A prefix of the file with a known checksum. */
  readonly prefix?: Prefix;
  /** True if a snapshot would make the next open faster. */
  readonly wantsSnapshot: boolean;
}

/** Number of events to read before condensing. */
const CHUNK_EVENTS = 10_000;

export async function loadLog(paths: LogPaths, rules: SnapshotRules | undefined): Promise<LoadedLog> {
  const isLong = rules !== undefined && statSync(paths.log).size >= minLogBytes(rules);
  if (!rules || !isLong) return readWhole(paths, undefined);
  return (await readSince(paths, rules)) ?? (await readCondensing(paths, rules)) ?? (await readWhole(paths, rules));
}

/** Returns `undefined` when there is no usable snapshot, or later lines change events before it. */
export async function readSince(paths: LogPaths, rules: SnapshotRules): Promise<LoadedLog | undefined> {
  const found = await readSnapshot(paths, rules.version);
  if (!found) return undefined;
  const { snapshot, position, prefix } = found;
  const content = await readLog(paths.log, { from: position });
  if (content.refersBack || content.events.some(isRewind)) return undefined;
  const events = [...snapshot.events, ...content.events];
  const wantsSnapshot = content.length - prefix.length >= minLogBytes(rules);
  return {
    events: wantsSnapshot ? rules.condense(events) : events,
    removed: snapshot.removed,
    count: snapshot.count + content.events.length,
    damage: [...snapshot.damage, ...content.damage],
    content: { ...content, events: [] },
    prefix,
    wantsSnapshot,
  };
}

/** Reads the whole log and condenses it in chunks. Returns `undefined` if it was rewound: a rewind needs all events. */
async function readCondensing(paths: LogPaths, rules: SnapshotRules): Promise<LoadedLog | undefined> {
  const { chunkEvents = CHUNK_EVENTS } = rules;
  let events: readonly SessionEvent[] = [];
  let added: SessionEvent[] = [];
  let count = 0;
  let isDue = false;
  let condensed = false;
  const onEvent = (event: SessionEvent): void => {
    if (isRewind(event)) throw new Rewound();
    count++;
    added.push(event);
    isDue ||= rules.isMilestone(event);
    if (!isDue || added.length < Math.max(chunkEvents, events.length)) return;
    events = rules.condense([...events, ...added]);
    [added, isDue, condensed] = [[], false, true];
  };
  try {
    const content = await readLog(paths.log, { onEvent });
    const all = [...events, ...added];
    const wanted = isDue || condensed;
    const own = wanted ? rules.condense(all) : all;
    return { events: own, removed: [], count, damage: content.damage, content, wantsSnapshot: wanted };
  } catch (error) {
    if (error instanceof Rewound) return undefined;
    throw error;
  }
}

class Rewound extends Error {}

async function readWhole(paths: LogPaths, rules: SnapshotRules | undefined): Promise<LoadedLog> {
  const { events: all, ...content } = await readLog(paths.log);
  const { events, removed } = visibleEvents(all);
  const count = events.length;
  const rest = { count, damage: content.damage, content: { ...content, events: [] } };
  const wanted = rules?.condense !== undefined && events.some((event) => rules.isMilestone(event));
  if (!rules || !wanted) return { events, removed, ...rest, wantsSnapshot: false };
  const own = { events: rules.condense(events), removed: rules.condenseRemoved(removed) };
  return { ...own, ...rest, wantsSnapshot: true };
}

const isRewind = ({ type }: SessionEvent): boolean => type === "troupe.rewound";
