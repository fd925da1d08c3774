/**
 * Scheduled prompts, sent repeatedly or once later while the session is open. Schedules are stored in the log and armed
 * again when the session is resumed. A missed one-shot prompt is sent once; missed rounds of a recurring one are
 * skipped.
 */
import type { ScheduleEntry, ScheduleRequest } from "../../commands/ports.ts";
import {
  MAX_INTERVAL_MS,
  MAX_SCHEDULED_CHARACTERS,
  MIN_INTERVAL_MS,
} from "../../commands/schedule/schedule-request.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";

/** `data` of `session.schedule_created`, as far as we write it. */
export interface ScheduleCreated {
  id: number;
  prompt: string;
  intervalMs: number;
  recurring: boolean;
  displayPrompt: string;
  /** Due time of a one-shot prompt: milliseconds since 1970. */
  at?: number;
  origin: "user" | "model";
}

export interface ScheduleOptions {
  readonly stamp: Stamp;
  /** Resolves when the event is in the log. */
  record(type: "session.schedule_created", data: ScheduleCreated): Promise<void>;
  record(type: "session.schedule_cancelled", data: { id: number }): Promise<void>;
  /**
   * Sends the prompt as an ordinary message. Resolves when it was answered or abandoned; until then it is not sent
   * again.
   */
  enqueue(prompt: string, displayPrompt: string): Promise<void>;
  /** Called when a prompt could not be sent or its end not be written. */
  onTrouble(error: unknown): void;
}

/** An event of a log. Only schedule events are used. */
interface LoggedEvent {
  readonly type: string;
  readonly timestamp: string;
  readonly data: unknown;
}

interface Armed {
  readonly created: ScheduleCreated;
  readonly createdAt: number;
  readonly stop: AbortController;
  nextRunAt: number;
}

const MAX_SCHEDULES = 50;

export class ScheduleRegistry {
  readonly #options: ScheduleOptions;
  readonly #armed = new Map<number, Armed>();
  #lastId = 0;
  #isDisposed = false;

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  /** Restores the schedules of a log. */
  static restored(events: Iterable<LoggedEvent>, options: ScheduleOptions): ScheduleRegistry {
    const registry = new ScheduleRegistry(options);
    const { left, lastId } = foldSchedules(events);
    registry.#lastId = lastId;
    for (const { created, createdAt } of left) registry.#arm(created, createdAt);
    return registry;
  }

  /** Returns the schedules in order of creation. */
  list(): readonly ScheduleEntry[] {
    return [...this.#armed.values()].map(entryOf);
  }

  async add(request: ScheduleRequest, origin: ScheduleCreated["origin"] = "user"): Promise<ScheduleEntry> {
    if (this.#isDisposed) throw new TroupeError("failed", "The session is closed; nothing can be scheduled.");
    const problem = problemOf(request);
    if (problem !== undefined) throw new TroupeError("usage", problem);
    if (this.#armed.size >= MAX_SCHEDULES) {
      const hint = "/schedules stop ends one.";
      throw new TroupeError("limit", `At most ${MAX_SCHEDULES} prompts can be scheduled at once.`, { hint });
    }
    const { prompt, displayPrompt, intervalMs, recurring } = request;
    const now = this.#options.stamp.now();
    this.#lastId++;
    const once = recurring ? {} : { at: now + intervalMs };
    const created: ScheduleCreated = {
      id: this.#lastId,
      prompt,
      intervalMs,
      recurring,
      displayPrompt,
      ...once,
      origin,
    };
    const armed = this.#arm(created, now);
    try {
      await this.#options.record("session.schedule_created", created);
    } catch (error) {
      this.#disarm(created.id);
      throw error;
    }
    return entryOf(armed);
  }

  /** Stops a schedule. Returns undefined if the id is unknown. */
  async stop(id: number): Promise<ScheduleEntry | undefined> {
    const armed = this.#armed.get(id);
    if (!armed) return undefined;
    this.#disarm(id);
    await this.#options.record("session.schedule_cancelled", { id });
    return entryOf(armed);
  }

  async cancelAll(): Promise<void> {
    for (const { id } of this.list()) await this.stop(id);
  }

  /** Restores the schedules after a rewind: disarms those not in the log and arms the others. */
  rewound(events: Iterable<LoggedEvent>): void {
    const { left, lastId } = foldSchedules(events);
    this.#lastId = Math.max(this.#lastId, lastId);
    const wanted = new Set(left.map(({ created }) => created.id));
    for (const id of [...this.#armed.keys()]) if (!wanted.has(id)) this.#disarm(id);
    for (const { created, createdAt } of left) if (!this.#armed.has(created.id)) this.#arm(created, createdAt);
  }

  /** Disarms all schedules because the session closes. The log keeps them. */
  dispose(): void {
    this.#isDisposed = true;
    for (const id of [...this.#armed.keys()]) this.#disarm(id);
  }

  #arm(created: ScheduleCreated, createdAt: number): Armed {
    const armed: Armed = { created, createdAt, stop: new AbortController(), nextRunAt: 0 };
    armed.nextRunAt = nextRun(armed, this.#options.stamp.now());
    this.#armed.set(created.id, armed);
    this.#run(armed).catch((error: unknown) => {
      if (!armed.stop.signal.aborted) this.#options.onTrouble(error);
    });
    return armed;
  }

  #disarm(id: number): void {
    this.#armed.get(id)?.stop.abort();
    this.#armed.delete(id);
  }

  async #run(armed: Armed): Promise<void> {
    const { stamp, enqueue, onTrouble } = this.#options;
    const { id, prompt, displayPrompt, recurring } = armed.created;
    const { signal } = armed.stop;
    do {
      // If the clock is set back, do not wait longer than the interval.
      const delay = Math.min(armed.nextRunAt - stamp.now(), armed.created.intervalMs);
      await stamp.sleep(Math.max(0, delay), signal);
      if (signal.aborted) return;
      // Log its end before sending: a crash in between must not send it twice.
      if (!recurring) await this.#end(id);
      await enqueue(prompt, displayPrompt).catch(onTrouble);
      armed.nextRunAt = nextRun(armed, stamp.now());
    } while (recurring && !signal.aborted);
  }

  async #end(id: number): Promise<void> {
    this.#armed.delete(id);
    await this.#options.record("session.schedule_cancelled", { id });
  }
}

/** Returns the active schedules of a log and the highest id it used. Malformed events are skipped. */
export function foldSchedules(events: Iterable<LoggedEvent>): {
  readonly left: readonly { readonly created: ScheduleCreated; readonly createdAt: number }[];
  readonly lastId: number;
} {
  const left = new Map<number, { created: ScheduleCreated; createdAt: number }>();
  let lastId = 0;
  for (const { type, timestamp, data } of events) {
    if (type === "troupe.rewound") for (const id of endedIn(data)) left.delete(id);
    const { id } = (data ?? {}) as Partial<ScheduleCreated>;
    const isOurs = type === "session.schedule_created" || type === "session.schedule_cancelled";
    if (!isOurs || id === undefined || !Number.isSafeInteger(id)) continue;
    lastId = Math.max(lastId, id);
    if (type === "session.schedule_cancelled") left.delete(id);
    else {
      const created = createdFrom(data);
      const createdAt = Date.parse(timestamp);
      if (created && !Number.isNaN(createdAt)) left.set(id, { created, createdAt });
    }
  }
  return { left: [...left.values()].slice(0, MAX_SCHEDULES), lastId };
}

function endedIn(data: unknown): readonly number[] {
  const { endedSchedules } = (data ?? {}) as { endedSchedules?: unknown };
  return Array.isArray(endedSchedules) ? endedSchedules : [];
}

/**
 * Returns the next time after now on the interval's grid. For a one-shot, returns its time, even if that has passed.
 */
function nextRun({ created, createdAt }: Pick<Armed, "created" | "createdAt">, now: number): number {
  const { intervalMs, recurring, at = createdAt + intervalMs } = created;
  if (!recurring) return at;
  const rounds = Math.floor(Math.max(0, now - createdAt) / intervalMs) + 1;
  return createdAt + rounds * intervalMs;
}

/** Parses a schedule. Returns undefined for kinds of other programs, such as calendar schedules. */
function createdFrom(data: unknown): ScheduleCreated | undefined {
  const { id, prompt, intervalMs, recurring = false, displayPrompt, at, origin } = data as Partial<ScheduleCreated>;
  if (id === undefined || typeof prompt !== "string" || typeof intervalMs !== "number") return undefined;
  const created: ScheduleCreated = {
    id,
    prompt,
    intervalMs,
    recurring: recurring === true,
    displayPrompt: typeof displayPrompt === "string" ? displayPrompt : prompt,
    ...(typeof at === "number" && Number.isFinite(at) && { at }),
    origin: origin === "model" ? "model" : "user",
  };
  return problemOf(created) === undefined ? created : undefined;
}

function problemOf({ prompt, intervalMs }: ScheduleRequest): string | undefined {
  const fits = Number.isFinite(intervalMs) && intervalMs >= MIN_INTERVAL_MS && intervalMs <= MAX_INTERVAL_MS;
  if (!fits) return "A schedule has an interval from 10 s to 1 day.";
  if (prompt.trim() === "") return "A schedule needs a prompt.";
  if (prompt.trimStart().startsWith("/")) return "Commands cannot be scheduled.";
  if (prompt.length > MAX_SCHEDULED_CHARACTERS) {
    return `A scheduled prompt has at most ${MAX_SCHEDULED_CHARACTERS} characters.`;
  }
  return undefined;
}

function entryOf({ created, nextRunAt }: Armed): ScheduleEntry {
  const { id, prompt, displayPrompt, intervalMs, recurring } = created;
  return { id, prompt, displayPrompt, intervalMs, recurring, nextRunAt };
}
