/**
 * The session that the page shows: its stored events, the view folded from them, and the view at an earlier event while a
 * person looks back. Everything is folded by `src/view`, in slices that leave the page responsive.
 */
import { signal } from "@preact/signals";
import type { SessionEvent } from "../../protocol/event.ts";
import { AgentLanes } from "../../view/lanes.ts";
import { Replay } from "../../view/replay.ts";
import { SessionView } from "../../view/session-view.ts";
import type { View } from "../../view/view.ts";

const SLICE_MS = 12;
/** As in `Replay`: seeking costs the events since the last checkpoint. */
const MIN_STEP = 500;
const CHECKPOINTS = 64;
/** New events that may follow the last checkpoint before more are made. */
const MAX_UNINDEXED = 2_000;

export class PageSession {
  readonly id: string;
  /** Stored events, in the order of the log. */
  readonly events: SessionEvent[] = [];
  /** Changes when there is something new to draw, at most once per frame. */
  readonly revision = signal(0);
  readonly state = signal<"loading" | "ready">("loading");
  /** Number of events that are shown; undefined for all of them, live. */
  readonly position = signal<number | undefined>(undefined);
  lanes = new AgentLanes();
  #fold = new SessionView();
  #replay = new Replay([]);
  #past: { readonly position: number; readonly fold: SessionView } | undefined;
  #waiting: SessionEvent[] = [];
  #isWorking = false;
  #isReady = false;
  #frame = 0;
  #ids = new Set<string>();

  constructor(id: string) {
    this.id = id;
  }

  /** The view to draw: live, or at the chosen position. */
  get view(): View {
    const position = this.position.value;
    if (position === undefined) return this.#fold.view;
    if (this.#past?.position !== position) this.#past = { position, fold: this.#at(position) };
    return this.#past.fold.view;
  }

  get live(): View {
    return this.#fold.view;
  }

  get length(): number {
    return this.events.length;
  }

  /** Time of the shown position. */
  get time(): number | undefined {
    const position = this.position.value;
    const event = position === undefined ? this.events.at(-1) : this.events[position - 1];
    return event && Date.parse(event.timestamp);
  }

  seek(position: number | undefined): void {
    const isEnd = position === undefined || position >= this.events.length;
    this.position.value = isEnd ? undefined : Math.max(0, Math.trunc(position));
  }

  /** Takes events of the stream. Those that it has already are left out. */
  take(events: readonly SessionEvent[]): void {
    for (const event of events) {
      if (event.ephemeral !== true) {
        if (this.#ids.has(event.id)) continue;
        this.#ids.add(event.id);
      }
      this.#waiting.push(event);
    }
    if (this.#isReady) void this.#work();
  }

  /** All stored events have arrived: fold them. */
  ready(): void {
    if (this.#isReady) return;
    this.#isReady = true;
    void this.#begin();
  }

  /** The view after so many events. */
  #at(position: number): SessionView {
    const fold = this.#replay.at(Math.min(position, this.#replay.length));
    for (let index = this.#replay.length; index < position; index++) {
      const event = this.events[index];
      if (event) fold.apply(event);
    }
    return fold;
  }

  async #begin(): Promise<void> {
    this.#isWorking = true;
    const first = this.#waiting;
    this.#waiting = [];
    for (const event of first) if (event.ephemeral !== true) this.events.push(event);
    await this.#index();
    for (const event of first) if (event.ephemeral === true) this.#fold.apply(event);
    this.state.value = "ready";
    this.#isWorking = false;
    this.#draw();
    await this.#work();
  }

  /** Folds everything from the beginning and makes checkpoints on the way. */
  async #index(): Promise<void> {
    const { length } = this.events;
    this.#replay = new Replay(this.events);
    const step = Math.max(MIN_STEP, Math.ceil(length / CHECKPOINTS));
    let slice = performance.now();
    for (let at = step + 1; at < length; at += step) {
      this.#replay.at(at);
      if (performance.now() - slice < SLICE_MS) continue;
      await breathe();
      slice = performance.now();
    }
    this.#fold = this.#replay.at(length);
    this.lanes = new AgentLanes();
    for (const event of this.events) this.lanes.apply(event);
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    let slice = performance.now();
    while (this.#waiting.length > 0) {
      const events = this.#waiting;
      this.#waiting = [];
      for (const [index, event] of events.entries()) {
        this.#apply(event);
        if (performance.now() - slice < SLICE_MS) continue;
        this.#waiting = [...events.slice(index + 1), ...this.#waiting];
        break;
      }
      this.#draw();
      if (this.#fold.view.needsReload) await this.#index();
      else if (this.events.length - this.#replay.length > MAX_UNINDEXED) await this.#reindex();
      if (performance.now() - slice >= SLICE_MS) await breathe();
      slice = performance.now();
    }
    this.#isWorking = false;
  }

  #apply(event: SessionEvent): void {
    this.#fold.apply(event);
    if (event.ephemeral === true) return;
    this.events.push(event);
    this.lanes.apply(event);
  }

  /** Checkpoints for what came since; the live view stays as it is. */
  async #reindex(): Promise<void> {
    const fold = this.#fold;
    const { lanes } = this;
    await this.#index();
    this.#fold = fold;
    this.lanes = lanes;
  }

  #draw(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.revision.value++;
    });
  }
}

/** Lets the browser draw and handle input. */
const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
