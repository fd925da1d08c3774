/**
 * The list of all sessions of a location, kept up to date while somebody looks at it. Summaries come from the store. Sessions
 * that the location chooses are folded too, so that their state and everything that waits for a person are known, whichever
 * process has them open.
 */
import type { SessionEvent } from "../protocol/event.ts";
import type { SessionSummary } from "../store/store.ts";
import { busyAgents } from "../view/agent-rows.ts";
import { SessionView } from "../view/session-view.ts";
import type { View } from "../view/view.ts";
import { blockedBy, openAttention } from "../view/waits.ts";
import type { AttentionRow, ListMessage, SessionRow } from "./api.ts";
import type { Feeds } from "./feeds.ts";
import type { OpenState, SessionLocation } from "./session-location.ts";

export interface RowsOptions {
  readonly location: SessionLocation;
  readonly feeds: Feeds;
}

const MIN_LOOK_MS = 1_000;
/** Looks become rarer down to this while nothing changes and the folder of the sessions is watched. */
const MAX_LOOK_MS = 5_000;
const RARER = 1.5;
const TELL_MS = 100;

interface Folded {
  view: SessionView;
  readonly stop: () => void;
  isWhole: boolean;
}

export class SessionListRows {
  readonly #options: RowsOptions;
  readonly #listeners = new Set<(message: ListMessage) => void>();
  readonly #rows = new Map<string, { readonly row: SessionRow; readonly text: string }>();
  readonly #folded = new Map<string, Folded>();
  readonly #revisions = new Map<string, string>();
  #summaries = new Map<string, SessionSummary>();
  #timer: NodeJS.Timeout | undefined;
  /** When the next look is due, on the clock of `performance`. */
  #due = Number.POSITIVE_INFINITY;
  #pause = MIN_LOOK_MS;
  #stopWatching: (() => void) | undefined;
  #telling: NodeJS.Timeout | undefined;
  #looking: Promise<boolean> | undefined;
  #problem = "";

  constructor(options: RowsOptions) {
    this.#options = options;
  }

  /** Calls the listener with the whole list, then with changes. Returns a function that ends it. */
  async follow(listener: (message: ListMessage) => void): Promise<() => void> {
    // A location that is out of reach is looked at again.
    if (this.#listeners.size === 0) await this.#look().catch(() => false);
    this.#listeners.add(listener);
    const rows = [...this.#rows.values()].map(({ row }) => row);
    listener({ rows, removed: [], isWhole: true, ...(this.#problem !== "" && { problem: this.#problem }) });
    this.#plan(MIN_LOOK_MS);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stopUpdates();
    };
  }

  /** The rows as they are now, for one who asks once. */
  async rows(): Promise<readonly SessionRow[]> {
    if (this.#listeners.size === 0) await this.#look();
    return [...this.#rows.values()].map(({ row }) => row);
  }

  /** Something about the session may have changed that its log does not tell. */
  changed(sessionId: string): void {
    this.#revisions.delete(sessionId);
    if (this.#listeners.size > 0) this.#plan(TELL_MS);
  }

  close(): void {
    this.#listeners.clear();
    this.#stopUpdates();
  }

  /** Stops while no tab is open: no timer, no file is watched. */
  #stopUpdates(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#telling);
    this.#stopWatching?.();
    this.#stopWatching = undefined;
    this.#timer = undefined;
    this.#due = Number.POSITIVE_INFINITY;
    this.#telling = undefined;
    for (const { stop } of this.#folded.values()) stop();
    this.#folded.clear();
  }

  /** Looks after this time, or earlier where that is planned. */
  #plan(ms: number): void {
    const due = performance.now() + ms;
    if (due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => {
      this.#due = Number.POSITIVE_INFINITY;
      // New and removed sessions are noticed at once. Where that cannot be, looks stay frequent.
      const onLost = (): void => (this.#stopWatching = undefined);
      this.#stopWatching ??= this.#options.location.watch(() => this.#plan(TELL_MS), onLost);
      const start = performance.now();
      void this.#look()
        .catch(() => true)
        .then((isChanged) => {
          this.#pause = isChanged || !this.#stopWatching ? MIN_LOOK_MS : Math.min(this.#pause * RARER, MAX_LOOK_MS);
          if (this.#listeners.size > 0)
            this.#plan(Math.max(this.#pause, (performance.now() - start) * this.#options.location.pollShare));
        });
    }, ms);
    this.#timer.unref();
  }

  /** Resolves with whether anything has changed. */
  #look(): Promise<boolean> {
    this.#looking ??= this.#lookOnce()
      .then(
        (isChanged) => {
          this.#note("");
          return isChanged;
        },
        (error: unknown) => {
          this.#note(error instanceof Error ? error.message : String(error));
          throw error;
        },
      )
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  #note(problem: string): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    for (const listener of this.#listeners) listener({ rows: [], removed: [], isWhole: false, problem });
  }

  async #lookOnce(): Promise<boolean> {
    const { location, feeds } = this.#options;
    const revisions = await location.revisions();
    const changed = revisions.filter(({ sessionId, revision }) => this.#revisions.get(sessionId) !== revision);
    const known = new Set(revisions.map(({ sessionId }) => sessionId));
    const removed = [...this.#rows.keys()].filter((id) => !known.has(id));
    for (const id of removed) this.#drop(id);
    if (changed.length > 0) {
      this.#summaries = new Map((await location.list()).map((summary) => [summary.sessionId, summary]));
      for (const { sessionId, revision } of changed) {
        this.#revisions.set(sessionId, revision);
        feeds.readNew(sessionId);
      }
    }
    const before = [...this.#folded.keys()];
    const folded = location.choose(revisions);
    await this.#foldThese(folded);
    const changedIds = new Set([...before, ...folded, ...changed.map(({ sessionId }) => sessionId)]);
    return (await this.#tell(removed, [...changedIds])) || changed.length > 0;
  }

  #drop(sessionId: string): void {
    this.#rows.delete(sessionId);
    this.#revisions.delete(sessionId);
    this.#folded.get(sessionId)?.stop();
    this.#folded.delete(sessionId);
  }

  async #foldThese(recent: readonly string[]): Promise<void> {
    const wanted = new Set(recent);
    for (const [id, { stop }] of this.#folded) {
      if (wanted.has(id)) continue;
      stop();
      this.#folded.delete(id);
    }
    const first: Promise<void>[] = [];
    for (const id of recent) if (!this.#folded.has(id)) first.push(this.#fold(id));
    await Promise.all(first);
  }

  /** Resolves when the past is folded. */
  #fold(sessionId: string): Promise<void> {
    return new Promise((resolve) => {
      const folded: Folded = { view: new SessionView(), stop: () => stop(), isWhole: false };
      const stop = this.#options.feeds.follow(sessionId, {
        position: 0,
        take: (events) => {
          this.#apply(folded, events);
          if (folded.isWhole) this.#soon(sessionId);
          return true;
        },
        caughtUp() {
          folded.isWhole = true;
          resolve();
        },
      });
      this.#folded.set(sessionId, folded);
      setTimeout(resolve, 5_000).unref();
    });
  }

  #apply(folded: Folded, events: readonly string[]): void {
    for (const json of events) {
      const event = JSON.parse(json) as SessionEvent;
      const agent = folded.view.apply(event);
      folded.view.drain(agent?.kind === "main" ? undefined : agent?.id);
    }
  }

  #soon(sessionId: string): void {
    if (this.#telling) return;
    this.#telling = setTimeout(() => {
      this.#telling = undefined;
      void this.#tell([], [...new Set([sessionId, ...this.#folded.keys()])]);
    }, TELL_MS);
    this.#telling.unref();
  }

  /** Resolves with whether a row was new. */
  async #tell(removed: readonly string[], ids: readonly string[]): Promise<boolean> {
    const rows: SessionRow[] = [];
    for (const id of ids) {
      const summary = this.#summaries.get(id);
      if (!summary || summary.detachedFrom !== undefined) continue;
      const row = await this.#rowOf(summary);
      const text = JSON.stringify(row);
      if (this.#rows.get(id)?.text === text) continue;
      this.#rows.set(id, { row, text });
      rows.push(row);
    }
    if (rows.length + removed.length === 0) return false;
    for (const listener of this.#listeners) listener({ rows, removed, isWhole: false });
    return true;
  }

  async #rowOf(summary: SessionSummary): Promise<SessionRow> {
    const { sessionId: id, name, title, turns, costUsd } = summary;
    const view = this.#folded.get(id)?.view.view;
    const open = await this.#options.location.holderOf(id, view !== undefined);
    const attention = view && open ? attentionOf(view, open) : [];
    const agents = view ? [...view.agents.values()].filter(({ kind }) => kind !== "sidekick") : [];
    return {
      id,
      turns,
      ...folderOf(view, summary),
      name: view?.session.name ?? name ?? title ?? "",
      model: view?.session.model ?? summary.model,
      state: stateOf(view, open, attention),
      holder: open?.holder,
      holderPid: open?.holderPid,
      isInDatabase: this.#options.location.isDatabase,
      work: open?.work,
      createdAt: Date.parse(summary.createdAt),
      updatedAt: Math.max(Date.parse(summary.updatedAt), view?.main.lastAt ?? 0),
      costUsd: view ? knownCost(view) : (costUsd ?? undefined),
      busyAgents: view && open ? busyAgents(view).length : 0,
      agents: agents.length,
      // A sign-in blocks nobody: it does not make the session wait.
      attention: [...attention, ...(open?.signIns ?? []).map((item) => ({ item, blocks: [], agent: nameOf("") }))],
    };
  }
}

/** Returns the folder of the session. A fork and a session that was resumed elsewhere are not where they began. */
function folderOf(view: View | undefined, summary: SessionSummary): Pick<SessionRow, "cwd" | "branch" | "repository"> {
  const { cwd, branch, repository } = view?.session.cwd === undefined ? summary : view.session;
  return { cwd: cwd ?? summary.cwd, branch, repository };
}

/** Undefined when no call has a known price. */
function knownCost({ main: { subtree } }: View): number | undefined {
  return subtree.costUsd === 0 && !subtree.isCostKnown ? undefined : subtree.costUsd;
}

function stateOf(
  view: View | undefined,
  open: OpenState | undefined,
  attention: readonly AttentionRow[],
): SessionRow["state"] {
  if (!open) return "closed";
  if (attention.length > 0 || (open.requests?.size ?? 0) > 0) return "waiting";
  if (open.work) return "working";
  if (!view) return "closed";
  return view.main.status === "running" || busyAgents(view).length > 0 ? "working" : "idle";
}

const nameOf = (id: string): string => (id === "" ? "main agent" : id);

function attentionOf(view: View, { requests }: OpenState): AttentionRow[] {
  return openAttention(view)
    .filter(({ id }) => requests?.has(id) !== false)
    .map((item) => ({
      item,
      blocks: blockedBy(view, item).map(nameOf),
      agent: nameOf(item.agentId ?? ""),
    }));
}
