/** Reads what a session needs of its log: from a snapshot and what was written since, or from the whole of it. */
import { statSync } from "node:fs";
import type { SessionEvent } from "../../protocol/event.ts";
import type { LogPaths } from "../access.ts";
import { type LogContent, readLog } from "./read-log.ts";
import { viewOf } from "./rewound.ts";
import { minLogBytes, type Prefix, readSnapshot, type Snapshot, type SnapshotRules } from "./snapshot.ts";

export interface LoadedLog extends Snapshot {
  /** How the file ends; its `events` and `damage` are empty or partial. */
  readonly content: LogContent;
  /** A beginning of the file whose checksum is known. */
  readonly prefix?: Prefix;
  /** Whether the next opening would be quicker with a snapshot of this. */
  readonly wantsSnapshot: boolean;
}

/** Events to read before they are condensed. */
const CHUNK_EVENTS = 10_000;

export async function loadLog(paths: LogPaths, rules: SnapshotRules | undefined): Promise<LoadedLog> {
  const isLong = rules !== undefined && statSync(paths.log).size >= minLogBytes(rules);
  if (!rules || !isLong) return readWhole(paths, undefined);
  return (await readSince(paths, rules)) ?? (await readCondensing(paths, rules)) ?? (await readWhole(paths, rules));
}

/** Undefined where there is no usable snapshot, or what was written since changes what came before it. */
export async function readSince(paths: LogPaths, rules: SnapshotRules): Promise<LoadedLog | undefined> {
  const found = await readSnapshot(paths, rules.version);
  if (!found) return undefined;
  const { snapshot, place, prefix } = found;
  const content = await readLog(paths.log, { from: place });
  if (content.refersBack || content.events.some(isRewind)) return undefined;
  const events = [...snapshot.events, ...content.events];
  const wantsSnapshot = content.length - prefix.length >= minLogBytes(rules);
  return {
    events: wantsSnapshot ? rules.condense(events) : events,
    removed: snapshot.removed,
    count: snapshot.count + content.events.length,
    damage: [...snapshot.damage, ...content.damage],
    content: { ...content, events: [] },
    ...{ prefix, wantsSnapshot },
  };
}

/** Reads the whole log and holds only what is alive. Undefined for one that was rewound: its view needs all of it. */
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
  const { events, removed } = viewOf(all);
  const count = events.length;
  const rest = { count, damage: content.damage, content: { ...content, events: [] } };
  const wanted = rules?.condense !== undefined && events.some((event) => rules.isMilestone(event));
  if (!rules || !wanted) return { events, removed, ...rest, wantsSnapshot: false };
  const own = { events: rules.condense(events), removed: rules.condenseRemoved(removed) };
  return { ...own, ...rest, wantsSnapshot: true };
}

const isRewind = ({ type }: SessionEvent): boolean => type === "troupe.rewound";
