/**
 * The session that the page shows: its stored events, the view folded from them, and the view at an earlier event while a
 * person looks back. Everything is folded by `src/view`, in slices that leave the page responsive.
 */
import { signal } from "@preact/signals";
import type { SessionEvent } from "../../protocol/event.ts";
import { AgentLanes } from "../../view/agent-lanes.ts";
import { Replay } from "../../view/replay.ts";
import { SessionView, type TodoRow } from "../../view/session-view.ts";
import type { View } from "../../view/view.ts";
import type { ReadyMessage } from "../api.ts";

const SLICE_MS = 12;
/** New events after which missing replay snapshots are made. */
const MAX_UNINDEXED = 2_000;

export class PageSession {
  readonly id: string;
  /** Changes when there is something new to draw, at most once per frame. */
  readonly revision = signal(0);
  readonly state = signal<"loading" | "ready">("loading");
  /** Number of events that are shown; undefined for all of them, live. */
  readonly position = signal<number | undefined>(undefined);
  readonly lanes = new AgentLanes();
  #fold = new SessionView();
  readonly #replay = new Replay();
  /** Number of events when replay snapshots were made last. */
  #indexed = 0;
  #past: { readonly position: number; readonly fold: SessionView } | undefined;
  #waiting: SessionEvent[] = [];
  #isWorking = false;
  #isReady = false;
  #isInDatabase = false;
  #frame = 0;
  #ids = new Set<string>();

  /** Called while a component is drawn: draws it again after each change. */
  subscribe(): void {
    void this.revision.value;
  }

  readonly #readTodos: () => Promise<readonly TodoRow[]>;
  /** Changes of the todo table when it was last read. */
  #todosAt = 0;

  /** `readTodos` reads the todo table of the session; no rows unless the session is open. */
  constructor(id: string, readTodos: () => Promise<readonly TodoRow[]> = async () => []) {
    this.id = id;
    this.#readTodos = readTodos;
  }

  /** The view to draw: live, or at the chosen position. */
  get view(): View {
    const position = this.position.value;
    if (position === undefined) return this.#fold.view;
    if (this.#past?.position !== position) this.#past = { position, fold: this.#replay.at(position) };
    return this.#past.fold.view;
  }

  get live(): View {
    return this.#fold.view;
  }

  /** Stored events, in the order of the log. */
  get events(): readonly SessionEvent[] {
    return this.#replay.events;
  }

  get length(): number {
    return this.#replay.length;
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

  /** It is in the database of a cluster: its files and its agents are at workers. */
  get isInDatabase(): boolean {
    return this.#isInDatabase;
  }

  /** All stored events have arrived: fold them. */
  ready({ isInDatabase }: ReadyMessage = { isInDatabase: false }): void {
    if (this.#isReady) return;
    this.#isInDatabase = isInDatabase;
    this.#isReady = true;
    void this.#begin();
  }

  async #begin(): Promise<void> {
    this.#isWorking = true;
    const first = this.#waiting;
    this.#waiting = [];
    for (const event of first) this.#replay.append(event);
    await this.#index();
    this.#fold = this.#replay.at(this.length);
    for (const event of this.events) this.lanes.apply(event);
    for (const event of first) if (event.ephemeral === true) this.#fold.apply(event);
    this.state.value = "ready";
    this.#isWorking = false;
    const isSql = ({ type, data }: SessionEvent) => type === "tool.execution_start" && data.toolName === "sql";
    if (this.events.some(isSql)) void this.#takeTodos();
    this.#draw();
    await this.#work();
  }

  /** Makes missing replay snapshots, in slices. */
  async #index(): Promise<void> {
    this.#indexed = this.length;
    let slice = performance.now();
    for (const _ of this.#replay.prepare()) {
      if (performance.now() - slice < SLICE_MS) continue;
      await breathe();
      slice = performance.now();
    }
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
      if (this.#fold.view.needsReload) this.#fold = this.#replay.at(this.length);
      if (this.#fold.view.plan.tableChanges !== this.#todosAt) void this.#takeTodos();
      if (this.length - this.#indexed > MAX_UNINDEXED) await this.#index();
      if (performance.now() - slice >= SLICE_MS) await breathe();
      slice = performance.now();
    }
    this.#isWorking = false;
  }

  /** The todos of a fleet are in no event. A failure leaves the plan as it is. */
  async #takeTodos(): Promise<void> {
    this.#todosAt = this.#fold.view.plan.tableChanges;
    const rows = await this.#readTodos().catch(() => []);
    this.#fold.setTodos(rows);
    this.#draw();
  }

  #apply(event: SessionEvent): void {
    this.#fold.apply(event);
    this.#replay.append(event);
    this.lanes.apply(event);
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
