/**
 * Sidekicks: agents that start automatically on an event (a user message, or a change of the working directory). They
 * look around beside the main agent and leave findings in its inbox.
 *
 * They change nothing, and no agent waits for them. A newer event may cancel their current work. Each is a run of the
 * same loop in the same log (`sidekick-run.ts`), under an id that no task can have. Their messages are derived from the
 * log (`inbox-entries.ts`).
 */

import type { AgentDefinition } from "../../agents/agent.ts";
import type { Sidekick, SidekickEvent } from "../../agents/sidekick.ts";
import type { Hooks } from "../../hooks/fire.ts";
import type { Emit, EventData, EventOf, SessionEvent } from "../../protocol/event.ts";
import { isAsked } from "../../protocol/message.ts";
import { nameTask } from "../../tasks/task-names.ts";
import type { Budget } from "../budget/budget.ts";
import { type Amount, addAmounts, nothing } from "../budget/reservations.ts";
import { Conversation } from "../conversation.ts";
import type { EventLog } from "../event-log.ts";
import { closeOpen } from "../recover.ts";
import type { RunSettings } from "../run-settings.ts";
import type { SystemNotice } from "../turn/pending-messages.ts";
import type { AgentSetup, AgentTask } from "./agent-run.ts";
import { entryNotice, InboxEntries } from "./inbox-entries.ts";
import { isSidekickId } from "./sidekick-id.ts";
import type { ActiveSidekick } from "./sidekick-run.ts";

export type SidekickDefinition = AgentDefinition & { readonly sidekick: Sidekick };

/** The runtime's side of sidekicks. */
export interface SidekickOptions {
  /** The sidekicks that may currently start. */
  agents(): readonly SidekickDefinition[];
  /** Returns notes for a sidekick that should start now, or undefined if it should not. */
  consider(definition: SidekickDefinition): Promise<{ readonly notes: readonly string[] } | undefined>;
  /** Resolves its read-only tools and its model. */
  resolveAgent(definition: SidekickDefinition): Promise<{ readonly tools: readonly string[]; readonly model: string }>;
  agentSetup(actor: AgentTask, definition: SidekickDefinition): Promise<AgentSetup>;
  warn(message: string): void;
}

export interface SidekickParts {
  readonly options: SidekickOptions;
  readonly settings: RunSettings;
  readonly log: EventLog;
  readonly budget: Budget;
  readonly hooks: Hooks | undefined;
  /** Passes on a notice that the main agent reads with its next input. Never wakes it. */
  onNotice(notice: SystemNotice, take: () => boolean): void;
}

/** The event that a sidekick looks into. */
export interface TriggerEvent {
  readonly event: SidekickEvent;
  /** The event's id. */
  readonly id: string;
  readonly about: EventOf<"user.message">["data"] | EventData<"session.context_changed">;
}

type EndReason = EventData<"troupe.sidekick_ended">["reason"];

/** Maximum time that closing waits for stopping sidekicks. */
const CLOSE_MS = 3_000;

export class Sidekicks {
  readonly inbox: InboxEntries;
  readonly #parts: SidekickParts;
  readonly #active = new Map<string, ActiveSidekick>();
  readonly #working = new Set<Promise<void>>();
  /** Conversations of open runs and of persistent sidekicks. */
  readonly #conversations = new Map<string, Conversation>();
  /** Runs that have started and not ended. */
  readonly #open = new Map<string, string>();
  /** How often each sidekick was triggered, by event. */
  readonly #fires = new Map<string, number>();
  readonly #runs = new Map<string, number>();
  readonly #warned = new Set<string>();
  /** Usage of all sidekicks since this process started. */
  #spent: Amount = nothing;
  #entries: number;
  #isClosed = false;

  constructor(parts: SidekickParts) {
    this.#parts = parts;
    const { log } = parts;
    for (const event of log.events) if (isSidekickId(event.agentId)) this.fold(event);
    this.inbox = new InboxEntries(log.events);
    this.#entries = this.inbox.ids.length;
    log.subscribe((event) => this.#observe(event));
  }

  /** Adds a sidekick's event to its conversation, and counts triggers and runs. */
  fold(event: SessionEvent): void {
    const { agentId = "" } = event;
    if (event.type === "troupe.sidekick_triggered") {
      count(this.#fires, fireKey(event.data.name, event.data.trigger));
      if (!this.#open.has(agentId)) count(this.#runs, slugOf(event.data.name));
      this.#open.set(agentId, event.data.name);
    }
    if (event.type === "troupe.sidekick_ended") {
      this.#open.delete(agentId);
      // A sidekick that restarts with each event does not need its old conversation.
      if (!isLasting(agentId)) this.#conversations.delete(agentId);
      return;
    }
    this.#conversationOf(agentId).apply(event);
  }

  /** Clears all state before the log is folded again. */
  reset(): void {
    for (const conversation of this.#conversations.values()) conversation.reset();
    this.#open.clear();
    this.#fires.clear();
    this.#runs.clear();
  }

  /** Ends runs of an earlier process and announces unread entries. Starts no sidekick. */
  async restore(): Promise<void> {
    for (const [agentId, name] of [...this.#open]) {
      const emit = this.#emitOf(agentId);
      await closeOpen(this.#conversationOf(agentId), emit);
      const sent = this.inbox.all.filter((entry) => entry.agentId === agentId).length;
      await emit("troupe.sidekick_ended", { name, reason: "interrupted", sent });
    }
    for (const { entryId, state } of this.inbox.all) if (state === "due") this.#offer(entryId);
  }

  /** Restores the state after a rewind. */
  async rewound(events: Iterable<SessionEvent>): Promise<void> {
    this.inbox.refill(events);
    await this.restore();
  }

  /** Stops running sidekicks for good and waits briefly for them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.stopRunning();
  }

  /** Stops running sidekicks and waits briefly for them. Later events can start them again. */
  async stopRunning(): Promise<void> {
    this.#stopAll("interrupted");
    const done = new AbortController();
    const late = this.#parts.settings.stamp.sleep(CLOSE_MS, done.signal).catch(() => undefined);
    await Promise.race([Promise.all(this.#working), late]);
    done.abort();
  }

  #observe(event: SessionEvent): void {
    if (event.ephemeral) return;
    this.inbox.apply(event);
    if (event.agentId !== undefined || this.#isClosed) return;
    // Aborting the answer also stops the sidekicks.
    if (event.type === "abort") this.#stopAll("stopped");
    const trigger = triggerEventOf(event);
    if (!trigger) return;
    for (const definition of this.#parts.options.agents()) this.#trigger(definition, trigger);
  }

  #trigger(definition: SidekickDefinition, news: TriggerEvent): void {
    const trigger = definition.sidekick.triggers.find(({ event }) => event === news.event);
    if (!trigger) return;
    const active = this.#active.get(definition.name);
    const mayRun =
      (this.#fires.get(fireKey(definition.name, news.event)) ?? 0) < (trigger.limit ?? Number.POSITIVE_INFINITY);
    if (definition.sidekick.behavior === "restart") active?.stop("superseded");
    else if (active && (!mayRun || active.pass(news))) return;
    if (mayRun) this.#begin(definition, news);
  }

  #begin(definition: SidekickDefinition, news: TriggerEvent): void {
    const { name } = definition;
    const handle = new SidekickHandle();
    this.#active.set(name, handle);
    const work = this.#run(definition, news, handle)
      .catch((error: unknown) => this.#failed(name, error))
      .finally(() => {
        if (this.#active.get(name) === handle) this.#active.delete(name);
        this.#working.delete(work);
      });
    this.#working.add(work);
  }

  async #run(definition: SidekickDefinition, news: TriggerEvent, handle: SidekickHandle): Promise<void> {
    const { options } = this.#parts;
    const started = await options.consider(definition);
    if (!started || handle.stopped) return;
    const [resolved, { SidekickRun }] = await Promise.all([
      options.resolveAgent(definition),
      import("./sidekick-run.ts"),
    ]);
    if (handle.stopped || this.#isClosed) return;
    const agentId = this.#newId(definition);
    const run = new SidekickRun({
      ...this.#parts,
      definition,
      agentId,
      notes: started.notes,
      resolved,
      conversation: this.#conversationOf(agentId),
      emit: this.#emitOf(agentId),
      send: (entry) => this.#send(agentId, entry),
      spend: (amount) => {
        this.#spent = addAmounts(this.#spent, amount);
      },
      spent: () => this.#spent,
    });
    handle.attach(run);
    await run.run([news, ...handle.early]);
  }

  /** Stores an entry and announces it once. Resolves when it is in the log. */
  async #send(agentId: string, entry: Omit<EventData<"troupe.inbox_entry">, "entryId">): Promise<string> {
    const { log } = this.#parts;
    const entryId = `inbox-${++this.#entries}`;
    try {
      await log.emit(agentId, "troupe.inbox_entry", { entryId, ...entry });
    } catch (error) {
      log.discard((event) => event.type === "troupe.inbox_entry" && event.data.entryId === entryId);
      throw error;
    }
    this.#offer(entryId);
    return entryId;
  }

  #offer(entryId: string): void {
    const entry = this.inbox.get(entryId);
    if (!entry) return;
    let isTaken = false;
    this.#parts.onNotice(entryNotice(entry), () => {
      // Returns false if it was read before it was announced.
      if (isTaken || this.inbox.get(entryId)?.state !== "due") return false;
      isTaken = true;
      return true;
    });
  }

  #stopAll(reason: EndReason): void {
    for (const active of this.#active.values()) active.stop(reason);
  }

  /** Reports a failure as a warning, once per sidekick, because no agent waits for it. */
  #failed(name: string, error: unknown): void {
    if (this.#isClosed || this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#parts.options.warn(`The sidekick ${name} could not run: ${error instanceof Error ? error.message : error}`);
  }

  #newId({ name, sidekick }: SidekickDefinition): string {
    const slug = slugOf(name);
    return sidekick.behavior === "persistent" ? persistentId(slug) : `${slug}#${(this.#runs.get(slug) ?? 0) + 1}`;
  }

  #emitOf(agentId: string): Emit {
    return (type, data) => this.#parts.log.emit(agentId, type, data);
  }

  #conversationOf(agentId: string): Conversation {
    const known = this.#conversations.get(agentId);
    if (known) return known;
    const made = new Conversation();
    this.#conversations.set(agentId, made);
    return made;
  }
}

/** An active sidekick. It collects events until its run exists, then passes them on. */
class SidekickHandle implements ActiveSidekick {
  readonly early: TriggerEvent[] = [];
  stopped = false;
  #run: ActiveSidekick | undefined;

  attach(run: ActiveSidekick): void {
    this.#run = run;
  }

  pass(news: TriggerEvent): boolean {
    if (this.#run) return this.#run.pass(news);
    this.early.push(news);
    return true;
  }

  stop(reason: EndReason): void {
    this.stopped = true;
    this.#run?.stop(reason);
  }
}

/**
 * Returns the event if it can trigger sidekicks: a user's message or a change of context. Messages of the runtime
 * itself do not count.
 */
function triggerEventOf(event: SessionEvent): TriggerEvent | undefined {
  if (event.type === "session.context_changed") return { event: event.type, id: event.id, about: event.data };
  if (event.type !== "user.message" || !isAsked(event.data.source)) return undefined;
  return { event: event.type, id: event.id, about: event.data };
}

const slugOf = (name: string): string => nameTask(name, () => false);
const PERSISTENT = "#";
const persistentId = (slug: string): string => `${slug}${PERSISTENT}`;
const isLasting = (agentId: string): boolean => agentId.endsWith(PERSISTENT);
const fireKey = (name: string, event: SidekickEvent): string => `${event} ${name}`;

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
