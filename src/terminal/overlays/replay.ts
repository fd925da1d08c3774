/**
 * Steps an overlay back and forth through the log of its session. The events are read when the first step is taken; the
 * session goes on meanwhile, and its new events are added to the replay.
 */
import { counted } from "../../lib/visible.ts";
import type { EventOf, SessionEvent } from "../../protocol/event.ts";
import { MAIN } from "../../view/draft.ts";
import { Replay } from "../../view/replay.ts";
import type { View } from "../../view/view.ts";
import { type Action, type KeyBinding, Keymap } from "../input/key-table.ts";
import type { TerminalSession } from "../session.ts";

/** The most that the events of a log may take, as characters of JSON. */
const MAX_CHARACTERS = 200_000_000;
/** Work on checkpoints is done in slices of this length, so that keys are still handled. */
const SLICE_MS = 12;

export interface OverlayReplayOptions {
  readonly session: TerminalSession;
  readonly keys: readonly KeyBinding[];
  /** There is something new to draw. */
  onChange(): void;
  /** Forks the session before this event; undefined: with all events. */
  fork(toEventId: string | undefined): void;
  readonly maxCharacters?: number;
}

export class OverlayReplay {
  readonly #options: OverlayReplayOptions;
  readonly #keymap: Keymap;
  #replay: Replay | undefined;
  /** Number of events that are shown, and the view after them; undefined while the overlay is live. */
  #past: { readonly position: number; readonly view: View } | undefined;
  /** Progress of reading the log. */
  #reading: string | undefined;
  #problem: string | undefined;
  /** Steps for which the log has to be read first. */
  #waiting: (() => void)[] = [];
  /** The key for a fork was pressed once. */
  #isForking = false;
  #unfollow: () => void = () => undefined;
  #isClosed = false;

  constructor(options: OverlayReplayOptions) {
    this.#options = options;
    this.#keymap = new Keymap(options.keys, "replay");
  }

  get isLive(): boolean {
    return this.#past === undefined;
  }

  /** The view to draw: of the session, or of the shown moment. */
  get view(): View {
    return this.#past?.view ?? this.#options.session.view;
  }

  /** The time by which ages are counted. */
  get now(): number {
    const event = this.#past && this.#replay?.events[Math.max(0, this.#past.position - 1)];
    return event ? Date.parse(event.timestamp) : Date.now();
  }

  /** Returns whether the key was one of the replay. Steps are those of this agent, or of all but the main one without an id. */
  key({ id, data }: { readonly id?: string | undefined; readonly data: string }, agentId?: string): boolean {
    const name = (id ?? data).replace(/^shift\+([a-z])$/, (_, letter: string) => letter.toUpperCase());
    const action = this.#keymap.find(name, performance.now());
    if (action === "wait") return true;
    const isIdle = this.isLive && this.#reading === undefined;
    if (!action || (isIdle && !STARTING.has(action))) return false;
    const isConfirmed = action === "replay-fork" && this.#isForking;
    this.#isForking = false;
    this.#problem = undefined;
    if (this.#replay) this.#act(action, { agentId, isConfirmed });
    else {
      this.#waiting.push(() => this.#act(action, { agentId, isConfirmed }));
      if (this.#reading === undefined) void this.#start();
    }
    return true;
  }

  /** The line that says which moment is shown; undefined while the overlay is live. */
  status(): string | undefined {
    if (this.#problem !== undefined) return `replay: ${this.#problem}`;
    if (this.#reading !== undefined) return `replay: ${this.#reading}`;
    if (!this.#past || !this.#replay) return undefined;
    const { position } = this.#past;
    if (this.#isForking) {
      const key = this.#keyOf("replay-fork");
      return `replay: ${key} again forks the session after event ${counted(position)} · the copy continues from there · files stay as they are now`;
    }
    const keys = SHOWN_KEYS.map(([word, ...actions]) => [...actions.map((one) => this.#keyOf(one)), word].join(" "));
    const where = `event ${counted(position)} of ${counted(this.#replay.length)}`;
    return [`replay: ${where}`, clockOf(this.now), ...keys].join(" · ");
  }

  /** The key that begins a replay, for the footer of a live overlay. */
  get help(): string {
    return this.isLive ? `${this.#keyOf("replay-back")} replay` : "";
  }

  /** Frees the events. */
  close(): void {
    this.#isClosed = true;
    this.#unfollow();
    this.#past = undefined;
    this.#replay = undefined;
  }

  #keyOf(wanted: Action): string {
    return this.#options.keys.find(({ action }) => action === wanted)?.keys[0] ?? "";
  }

  #act(action: Action, { agentId, isConfirmed }: { agentId: string | undefined; isConfirmed: boolean }): void {
    const from = this.#past?.position ?? this.#replay?.length ?? 0;
    if (action !== "replay-fork") this.#seek(this.#target(action, from, agentId));
    else if (!isConfirmed) this.#isForking = !this.isLive;
    else if (!this.isLive) this.#options.fork(this.#replay?.events[from]?.id);
  }

  /** The position to which a step leads; undefined for live. */
  #target(action: Action, from: number, agentId: string | undefined): number | undefined {
    const concerns = filterOf(this.#replay?.events ?? [], agentId);
    const isChange = (event: SessionEvent): boolean => CHANGES.has(event.type) && concerns(event);
    // Turns of an agent; in the tree, beginnings and ends of agents.
    const isLarge = (event: SessionEvent): boolean =>
      agentId === undefined ? isOfTask(event) : event.type === "assistant.turn_start" && concerns(event);
    const step = (by: 1 | -1, matches = isChange): number | undefined => this.#replay?.step(from, by, matches);
    const start = (): number => this.#replay?.step(0, 1, isChange) ?? 0;
    switch (action) {
      case "replay-back":
        return step(-1) ?? start();
      case "replay-turn-back":
        return step(-1, isLarge) ?? start();
      case "replay-forward":
        return step(1);
      case "replay-turn-forward":
        return step(1, isLarge);
      case "replay-start":
        return start();
      default:
        return undefined;
    }
  }

  #seek(position: number | undefined): void {
    const { view } = this.#replay?.at(position ?? 0) ?? {};
    this.#past = position === undefined || !view ? undefined : { position, view };
  }

  async #start(): Promise<void> {
    try {
      this.#setProgress("reading the log");
      this.#replay = await this.#read();
      for (const act of this.#waiting) act();
    } catch (error) {
      this.#unfollow();
      this.#problem = error instanceof Error ? error.message : String(error);
    }
    this.#waiting = [];
    this.#setProgress(undefined);
  }

  /** Reads all events, page by page, and makes the checkpoints. Events that happen meanwhile are added. */
  async #read(): Promise<Replay> {
    const { session, maxCharacters = MAX_CHARACTERS } = this.#options;
    const early: SessionEvent[] = [];
    let take = (event: SessionEvent): void => void early.push(event);
    this.#unfollow = session.follow((event) => take(event));
    const size = sizeLimit(maxCharacters);
    const past = await session.events((events) => {
      if (this.#isClosed) throw new Error("the overlay was closed");
      size(events);
      this.#setProgress(`reading event ${counted(events.length)} of ${counted(session.view.sequence)}`);
    });
    const known = new Set(past.map(({ id }) => id));
    const replay = new Replay(past);
    for (const event of early) if (!known.has(event.id)) replay.append(event);
    take = (event) => replay.append(event);
    let slice = performance.now();
    for (const done of replay.prepare()) {
      if (performance.now() - slice < SLICE_MS) continue;
      this.#setProgress(`preparing event ${counted(done)} of ${counted(replay.length)}`);
      await new Promise(setImmediate);
      if (this.#isClosed) break;
      slice = performance.now();
    }
    return replay;
  }

  #setProgress(progress: string | undefined): void {
    this.#reading = progress;
    this.#options.onChange();
  }
}

/** Keys that begin a replay. The others have a meaning only in one. */
const STARTING: ReadonlySet<Action> = new Set(["replay-back", "replay-turn-back", "replay-start"]);

const SHOWN_KEYS: readonly (readonly [string, ...Action[]])[] = [
  ["forward", "replay-forward"],
  ["live", "replay-live"],
  ["back", "replay-back"],
  ["turns", "replay-turn-back", "replay-turn-forward"],
  ["start", "replay-start"],
  ["fork", "replay-fork"],
];

/** Events that change what the run of an agent or its row in the tree shows. */
const CHANGES: ReadonlySet<SessionEvent["type"]> = new Set([
  "user.message",
  "assistant.turn_start",
  "assistant.message",
  "tool.execution_start",
  "tool.execution_complete",
  "permission.requested",
  "permission.completed",
  "session.compaction_complete",
  "session.error",
  "abort",
  "troupe.limit_reached",
  "troupe.question",
  "troupe.task_created",
  "troupe.task_state",
]);

/**
 * Returns whether an event is about this agent, or about the state of one that it started. Without an id: about any agent but
 * the main one, which is not in the tree.
 */
function filterOf(events: readonly SessionEvent[], wanted: string | undefined): (event: SessionEvent) => boolean {
  const tasks = new Set([wanted]);
  for (const { type, data } of events)
    if (type === "troupe.task_created" && (data.parentId ?? MAIN) === wanted) tasks.add(data.taskId);
  return (event) => {
    if (wanted === undefined) return isOfTask(event) || event.agentId !== undefined;
    return isOfTask(event) ? tasks.has(event.data.taskId) : (event.agentId ?? MAIN) === wanted;
  };
}

const isOfTask = (event: SessionEvent): event is EventOf<"troupe.task_created"> | EventOf<"troupe.task_state"> =>
  event.type === "troupe.task_created" || event.type === "troupe.task_state";

/** Throws when pages that are read one after the other have become too large. Reading may start again. */
function sizeLimit(most: number): (events: readonly SessionEvent[]) => void {
  let seen: readonly SessionEvent[] = [];
  let count = 0;
  let characters = 0;
  return (events) => {
    if (events !== seen) [seen, count, characters] = [events, 0, 0];
    for (; count < events.length; count++) characters += JSON.stringify(events[count]).length;
    if (characters <= most) return;
    const size = `${counted(Math.floor(most / 1_000_000))} MB`;
    throw new Error(`the log has more than ${size} of events. Run troupe web, which replays it in a browser.`);
  };
}

function clockOf(time: number): string {
  const date = new Date(time);
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}
