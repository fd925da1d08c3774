/** A `Store` in memory. */

import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { checkSize, cleanExtension, cleanName, nameAsset } from "./assets.ts";
import { forkedEvents } from "./fork-log.ts";
import { viewOf } from "./log/rewound.ts";
import { scanEvents } from "./log-scan.ts";
import { alreadyThere, checkSessionId, noSuchSession } from "./session-id.ts";
import type { SessionLog, SessionSummary, Store } from "./store.ts";
import { summarise } from "./summary.ts";

interface Kept {
  events: SessionEvent[];
  summary: SessionSummary | undefined;
  assets: Map<string, { data: Uint8Array; path: string }>;
  files: Map<string, string>;
  changes: number;
  /** Sequence number of the last append among all sessions. */
  changed: number;
  isHeld: boolean;
}

/** Returns a store without a disk, with the same guarantees while the process lives. */
export function memoryStore(): Store {
  const sessions = new Map<string, Kept>();
  let clock = 0;

  const find = (sessionId: string): Kept => {
    const found = sessions.get(checkSessionId(sessionId));
    if (!found || found.events.length === 0) throw noSuchSession(sessionId);
    return found;
  };
  const newestFirst = (): [string, Kept][] =>
    [...sessions].filter(([, kept]) => kept.events.length > 0).sort(([, a], [, b]) => b.changed - a.changed);

  /** Without `held`, the session is claimed at the first write. */
  function logOf(sessionId: string, content: readonly SessionEvent[], held?: Kept): SessionLog {
    const directory = `/memory/session-state/${sessionId}`;
    const closed = (): TroupeError => new TroupeError("storage", "The session log is closed.");
    let owned = held;
    let isClosed = false;
    const own = (): Kept => {
      if (isClosed) throw closed();
      owned ??= hold(sessionId);
      return owned;
    };
    return {
      sessionId,
      directory,
      ...viewOf(content),
      count: viewOf(content).events.length,
      everything: async () => [...((owned ?? sessions.get(sessionId))?.events ?? [])],
      page: async (from, to) =>
        viewOf((owned ?? sessions.get(sessionId))?.events ?? []).events.slice(Math.max(0, from), Math.max(0, to)),
      snapshot: async () => false,
      damage: [],
      heldBy: undefined,
      async append(event) {
        const kept = own();
        kept.events.push(structuredClone(event));
        kept.changes++;
        kept.changed = ++clock;
      },
      async flush() {},
      async recover() {
        if (isClosed) throw closed();
      },
      async writeAsset(data, extension) {
        checkSize(data.byteLength);
        const { assetId, hash } = nameAsset(data);
        const { assets } = own();
        const asset = assets.get(assetId) ?? {
          data: new Uint8Array(data),
          path: `${directory}/records/${hash}${cleanExtension(extension)}`,
        };
        assets.set(assetId, asset);
        return { assetId, path: asset.path };
      },
      async readAsset(assetId) {
        return (owned ?? sessions.get(sessionId))?.assets.get(assetId)?.data;
      },
      async writeFile(name, text) {
        checkSize(Buffer.byteLength(text));
        const { files } = own();
        const path = `${directory}/records/${files.size + 1}-${cleanName(name)}`;
        files.set(path, text);
        return path;
      },
      async readFile(path) {
        return (owned ?? sessions.get(sessionId))?.files.get(path);
      },
      async writeSummary(summary) {
        own().summary = summary;
      },
      async close() {
        if (owned && !isClosed) owned.isHeld = false;
        isClosed = true;
      },
    };
  }

  function hold(sessionId: string): Kept {
    const kept = sessions.get(sessionId) ?? emptySession();
    if (kept.isHeld) throw heldError(sessionId);
    kept.isHeld = true;
    sessions.set(sessionId, kept);
    return kept;
  }

  return {
    async create(sessionId) {
      if ((sessions.get(checkSessionId(sessionId))?.events.length ?? 0) > 0) throw alreadyThere(sessionId);
      return logOf(sessionId, []);
    },
    async open(sessionId) {
      const kept = find(sessionId);
      const content = [...kept.events];
      if (!kept.isHeld) return logOf(sessionId, content, hold(sessionId));
      const refuse = async (): Promise<never> => {
        throw heldError(sessionId);
      };
      const refused = { append: refuse, recover: refuse, writeAsset: refuse, writeFile: refuse, writeSummary: refuse };
      return { ...logOf(sessionId, content), ...refused, heldBy: { pid: process.pid } };
    },
    async read(sessionId) {
      return { ...viewOf([...find(sessionId).events]), damage: [] };
    },
    async *events(sessionId) {
      yield* viewOf([...find(sessionId).events]).events;
    },
    recent: async () => undefined,
    async scan(sessionId, scan) {
      return scanEvents(viewOf([...find(sessionId).events]).events, scan);
    },
    async revision(sessionId) {
      const kept = sessions.get(checkSessionId(sessionId));
      return kept && kept.events.length > 0 ? String(kept.changes) : undefined;
    },
    async revisions() {
      return newestFirst().map(([sessionId, { changes, changed }]) => ({
        sessionId,
        revision: String(changes),
        changedMs: changed,
      }));
    },
    async list() {
      return newestFirst().map(
        ([sessionId, { summary, events }]) => summary ?? summarise(events, sessionId, events.at(-1)?.timestamp ?? ""),
      );
    },
    async ids() {
      return newestFirst().map(([sessionId]) => sessionId);
    },
    async fork(sessionId, fork) {
      const kept = find(sessionId);
      if (sessions.has(checkSessionId(fork.sessionId))) throw alreadyThere(fork.sessionId);
      const { summary } = fork;
      const events = forkedEvents(viewOf([...kept.events]).events, fork.events).map((event) => structuredClone(event));
      sessions.set(fork.sessionId, {
        ...{ ...emptySession(), summary, assets: new Map(kept.assets), files: new Map(kept.files) },
        ...{ events, changes: 1, changed: ++clock },
      });
    },
    async remove(sessionId) {
      if (find(sessionId).isHeld) throw heldError(sessionId);
      sessions.delete(sessionId);
    },
  };
}

function emptySession(): Kept {
  return {
    events: [],
    summary: undefined,
    assets: new Map(),
    files: new Map(),
    changes: 0,
    changed: 0,
    isHeld: false,
  };
}

function heldError(sessionId: string): TroupeError {
  return new TroupeError("storage", `Session ${sessionId} is being written by process ${process.pid}.`, {
    hint: "Close it there first.",
  });
}
