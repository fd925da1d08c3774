/** A `Store` in memory. */

import { TroupeError } from "../../src/protocol/errors.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { checkSize, cleanExtension, cleanName, nameAsset } from "../../src/store/assets.ts";
import { forkedEvents } from "../../src/store/fork-log.ts";
import { visibleEvents } from "../../src/store/log/rewound.ts";
import { scanEvents } from "../../src/store/log-scan.ts";
import { alreadyThere, checkSessionId, noSuchSession } from "../../src/store/session-id.ts";
import type { SessionLog, SessionSummary, Store } from "../../src/store/store.ts";
import { summaryOfEvents } from "../../src/store/summary.ts";

/** The sessions of one store. */
interface Sessions {
  readonly byId: Map<string, MemorySession>;
  /** Sequence number of the last append among all sessions. */
  clock: number;
}

interface MemorySession {
  events: SessionEvent[];
  summary: SessionSummary | undefined;
  assets: Map<string, { data: Uint8Array; path: string }>;
  files: Map<string, string>;
  changes: number;
  /** The store's clock at the last append. */
  changed: number;
  isHeld: boolean;
}

/** Returns a store without a disk, with the same guarantees while the process lives. */
export function memoryStore(): Store {
  const sessions: Sessions = { byId: new Map(), clock: 0 };
  const { byId } = sessions;
  return {
    ...logsOf(sessions),
    ...listingsOf(sessions),
    async read(sessionId) {
      return { ...visibleEvents([...find(sessions, sessionId).events]), damage: [] };
    },
    async *events(sessionId) {
      yield* visibleEvents([...find(sessions, sessionId).events]).events;
    },
    recent: async () => undefined,
    async scan(sessionId, scan) {
      return scanEvents(visibleEvents([...find(sessions, sessionId).events]).events, scan);
    },
    async fork(sessionId, fork) {
      const session = find(sessions, sessionId);
      if (byId.has(checkSessionId(fork.sessionId))) throw alreadyThere(fork.sessionId);
      const { summary } = fork;
      const visible = visibleEvents([...session.events]).events;
      byId.set(fork.sessionId, {
        ...emptySession(),
        summary,
        assets: new Map(session.assets),
        files: new Map(session.files),
        events: forkedEvents(visible, fork.events).map((event) => structuredClone(event)),
        changes: 1,
        changed: ++sessions.clock,
      });
    },
    async remove(sessionId) {
      if (find(sessions, sessionId).isHeld) throw heldError(sessionId);
      byId.delete(sessionId);
    },
  };
}

function find({ byId }: Sessions, sessionId: string): MemorySession {
  const found = byId.get(checkSessionId(sessionId));
  if (!found || found.events.length === 0) throw noSuchSession(sessionId);
  return found;
}

/** Claims a session for writing. Throws when it is claimed already. */
function hold({ byId }: Sessions, sessionId: string): MemorySession {
  const session = byId.get(sessionId) ?? emptySession();
  if (session.isHeld) throw heldError(sessionId);
  session.isHeld = true;
  byId.set(sessionId, session);
  return session;
}

function logsOf(sessions: Sessions): Pick<Store, "create" | "open"> {
  return {
    async create(sessionId) {
      if ((sessions.byId.get(checkSessionId(sessionId))?.events.length ?? 0) > 0) throw alreadyThere(sessionId);
      return memoryLog(sessions, sessionId, { content: [] });
    },
    async open(sessionId) {
      const session = find(sessions, sessionId);
      const content = [...session.events];
      if (!session.isHeld) return memoryLog(sessions, sessionId, { content, held: hold(sessions, sessionId) });
      const refuse = async (): Promise<never> => {
        throw heldError(sessionId);
      };
      const refused = {
        append: refuse,
        repairAfterFailedWrite: refuse,
        writeAsset: refuse,
        writeFile: refuse,
        writeSummary: refuse,
      };
      return { ...memoryLog(sessions, sessionId, { content }), ...refused, heldBy: { pid: process.pid } };
    },
  };
}

type Listings = Pick<Store, "revision" | "revisions" | "list" | "ids">;

function listingsOf({ byId }: Sessions): Listings {
  const newestFirst = (): [string, MemorySession][] =>
    [...byId].filter(([, { events }]) => events.length > 0).sort(([, a], [, b]) => b.changed - a.changed);
  return {
    async revision(sessionId) {
      const session = byId.get(checkSessionId(sessionId));
      return session && session.events.length > 0 ? String(session.changes) : undefined;
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
        ([sessionId, { summary, events }]) =>
          summary ?? summaryOfEvents(events, sessionId, events.at(-1)?.timestamp ?? ""),
      );
    },
    async ids() {
      return newestFirst().map(([sessionId]) => sessionId);
    },
  };
}

/** A log whose session is claimed by `own`, at the latest at the first write. */
interface OwnedSession {
  readonly directory: string;
  /** Returns the session to write to. Claims it if necessary. Throws after `close`. */
  own(): MemorySession;
  /** Returns the session to read from, if there is one. */
  peek(): MemorySession | undefined;
}

/** Without `held`, the session is claimed at the first write. */
function memoryLog(
  sessions: Sessions,
  sessionId: string,
  { content, held }: { readonly content: readonly SessionEvent[]; readonly held?: MemorySession },
): SessionLog {
  const directory = `/memory/session-state/${sessionId}`;
  let owned = held;
  let isClosed = false;
  const own = (): MemorySession => {
    if (isClosed) throw closedError();
    owned ??= hold(sessions, sessionId);
    return owned;
  };
  const peek = (): MemorySession | undefined => owned ?? sessions.byId.get(sessionId);
  return {
    sessionId,
    directory,
    ...visibleEvents(content),
    count: visibleEvents(content).events.length,
    everything: async () => [...(peek()?.events ?? [])],
    page: async (from, to) => visibleEvents(peek()?.events ?? []).events.slice(Math.max(0, from), Math.max(0, to)),
    snapshot: async () => false,
    damage: [],
    heldBy: undefined,
    async append(event) {
      const session = own();
      session.events.push(structuredClone(event));
      session.changes++;
      session.changed = ++sessions.clock;
    },
    async flush() {},
    async repairAfterFailedWrite() {
      if (isClosed) throw closedError();
    },
    ...filesOf({ directory, own, peek }),
    async writeSummary(summary) {
      own().summary = summary;
    },
    async close() {
      if (owned && !isClosed) owned.isHeld = false;
      isClosed = true;
    },
  };
}

type Files = Pick<SessionLog, "writeAsset" | "readAsset" | "writeFile" | "readFile">;

function filesOf({ directory, own, peek }: OwnedSession): Files {
  return {
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
      return peek()?.assets.get(assetId)?.data;
    },
    async writeFile(name, text) {
      checkSize(Buffer.byteLength(text));
      const { files } = own();
      const path = `${directory}/records/${files.size + 1}-${cleanName(name)}`;
      files.set(path, text);
      return path;
    },
    async readFile(path) {
      return peek()?.files.get(path);
    },
  };
}

function emptySession(): MemorySession {
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

const closedError = (): TroupeError => new TroupeError("storage", "The session log is closed.");

function heldError(sessionId: string): TroupeError {
  return new TroupeError("storage", `Session ${sessionId} is being written by process ${process.pid}.`, {
    hint: "Close it there first.",
  });
}
