/**
 * Tasks that clients run themselves and show beside the session's agents. They are held in memory while the session is
 * open. A task whose client leaves is orphaned until a client registers it again.
 */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ClientConnection } from "../connection.ts";

const MAX_TASKS = 200;
const CANCEL_MS = 10_000;
const SHUTDOWN_MS = 1_000;
const Cancelled = z.object({ cancelled: z.boolean() });
const MAX_RECENT = 20;

export interface TaskRegistration {
  readonly clientTaskId: string;
  readonly description: string;
  readonly displayName?: string | undefined;
  readonly cancellable: boolean;
  readonly expectedSequence?: number | undefined;
}

export type TaskUpdate =
  | {
      readonly kind: "progress";
      readonly status?: "running" | "idle" | undefined;
      readonly message?: string | undefined;
      readonly phase?: string | null | undefined;
      readonly percentage?: number | null | undefined;
    }
  | { readonly kind: "completed"; readonly message?: string | undefined; readonly result?: Json | undefined }
  | {
      readonly kind: "failed";
      readonly message?: string | undefined;
      readonly error: string;
      readonly code?: string | undefined;
    }
  | { readonly kind: "cancelled"; readonly message?: string | undefined; readonly reason?: string | undefined };

type Status = "running" | "idle" | "completed" | "failed" | "cancelled" | "orphaned";

interface ClientTask {
  readonly id: string;
  readonly clientTaskId: string;
  description: string;
  displayName: string | undefined;
  cancellable: boolean;
  connection: ClientConnection;
  status: Status;
  sequence: number;
  readonly startedAt: number;
  updatedAt: number;
  completedAt?: number;
  orphanedAt?: number;
  reclaimedAt?: number;
  end: {
    readonly result?: Json;
    readonly error?: string;
    readonly errorCode?: string;
    readonly cancellationReason?: string;
  };
  phase: string | null;
  percentage: number | null;
  readonly recent: { readonly message: string; readonly timestamp: string }[];
}

export class ClientTasks {
  readonly #sessionId: string;
  readonly #onChange: () => void;
  readonly #tasks = new Map<string, ClientTask>();

  constructor(sessionId: string, onChange: () => void) {
    this.#sessionId = sessionId;
    this.#onChange = onChange;
  }

  /** Registers a task, or takes over an orphaned one. Throws if the task belongs to another client. */
  register(
    connection: ClientConnection,
    registration: TaskRegistration,
  ): { task: object; created: boolean; reclaimed: boolean } {
    const known = [...this.#tasks.values()].find(({ clientTaskId }) => clientTaskId === registration.clientTaskId);
    if (!known || isEnded(known))
      return { task: this.#create(connection, registration), created: true, reclaimed: false };
    if (known.connection !== connection && known.status !== "orphaned") {
      throw new TroupeError("usage", `The task ${registration.clientTaskId} belongs to another client.`);
    }
    if (registration.expectedSequence !== undefined && registration.expectedSequence !== known.sequence) {
      const message = `The task ${registration.clientTaskId} is at sequence ${known.sequence}, not ${registration.expectedSequence}.`;
      throw new TroupeError("usage", message);
    }
    const reclaimed = known.status === "orphaned";
    known.connection = connection;
    if (reclaimed) this.#touch(Object.assign(known, { status: "running", reclaimedAt: Date.now() }));
    return { task: infoOf(known), created: false, reclaimed };
  }

  #create(connection: ClientConnection, registration: TaskRegistration): object {
    if (this.#tasks.size >= MAX_TASKS) this.#forgetOldest();
    const { clientTaskId, description, displayName, cancellable } = registration;
    const now = Date.now();
    const task: ClientTask = {
      id: `client-${crypto.randomUUID()}`,
      clientTaskId,
      description,
      displayName,
      cancellable,
      connection,
      status: "running",
      sequence: 0,
      startedAt: now,
      updatedAt: now,
      end: {},
      phase: null,
      percentage: null,
      recent: [],
    };
    this.#tasks.set(task.id, task);
    this.#onChange();
    return infoOf(task);
  }

  #forgetOldest(): void {
    const ended = [...this.#tasks.values()].find(isEnded);
    if (!ended) throw new TroupeError("limit", `A session can have at most ${MAX_TASKS} tasks of clients.`);
    this.#tasks.delete(ended.id);
  }

  /** Applies updates in the order of their sequence. A repeated or late update changes nothing. */
  update(
    connection: ClientConnection,
    { id, sequence, update }: { id: string; sequence: number; update: TaskUpdate },
  ): { task: object; applied: boolean; duplicate: boolean } {
    const task = this.#tasks.get(id);
    if (!task || task.connection !== connection) throw new TroupeError("usage", `This client has no task ${id}.`);
    const duplicate = sequence <= task.sequence;
    if (duplicate || isEnded(task)) return { task: infoOf(task), applied: false, duplicate };
    task.sequence = sequence;
    apply(task, update);
    this.#touch(task);
    return { task: infoOf(task), applied: true, duplicate: false };
  }

  /** Asks the client to cancel. Returns false for unknown tasks, and if the client cannot or does not cancel. */
  async cancel(id: string, reason: "cancel_requested" | "session_shutdown" = "cancel_requested"): Promise<boolean> {
    const task = this.#tasks.get(id);
    if (!task || !canCancel(task)) return false;
    const { clientTaskId, connection } = task;
    const asked = { sessionId: this.#sessionId, id, clientTaskId, cancellationId: crypto.randomUUID(), reason };
    const timeoutMs = reason === "session_shutdown" ? SHUTDOWN_MS : CANCEL_MS;
    const answer = await connection.ask("tasks.cancel", asked, { timeoutMs }).catch(() => undefined);
    return Cancelled.safeParse(answer).data?.cancelled ?? false;
  }

  /** Removes a task that has ended or is orphaned. */
  remove(id: string): boolean {
    const task = this.#tasks.get(id);
    if (!task || !(isEnded(task) || task.status === "orphaned")) return false;
    this.#tasks.delete(id);
    this.#onChange();
    return true;
  }

  list(): readonly object[] {
    return [...this.#tasks.values()].map(infoOf);
  }

  progress(id: string): object | undefined {
    const task = this.#tasks.get(id);
    if (!task) return undefined;
    const { phase, percentage, recent, status, sequence } = task;
    const lastMessage = recent.at(-1)?.message;
    return {
      type: "client",
      status,
      sequence,
      updatedAt: new Date(task.updatedAt).toISOString(),
      recentActivity: [...recent],
      ...(phase !== null && { phase }),
      ...(percentage !== null && { percentage }),
      ...defined({ lastMessage }),
    };
  }

  /** Orphans the tasks of a client that disconnected. */
  handleDisconnect(connection: ClientConnection): void {
    for (const task of this.#tasks.values()) {
      if (task.connection !== connection || isEnded(task)) continue;
      this.#touch(Object.assign(task, { status: "orphaned", orphanedAt: Date.now() }));
    }
  }

  /** Asks clients to cancel their open tasks, since the session closes. */
  async close(): Promise<void> {
    const open = [...this.#tasks.values()].filter(canCancel);
    await Promise.allSettled(open.map(({ id }) => this.cancel(id, "session_shutdown")));
  }

  #touch(task: ClientTask): void {
    task.updatedAt = Date.now();
    this.#onChange();
  }
}

const isEnded = ({ status }: ClientTask): boolean => ["completed", "failed", "cancelled"].includes(status);
const canCancel = (task: ClientTask): boolean =>
  task.cancellable && !isEnded(task) && task.status !== "orphaned" && !task.connection.isClosed;

function apply(task: ClientTask, update: TaskUpdate): void {
  if (update.message !== undefined) {
    task.recent.push({ message: update.message, timestamp: new Date().toISOString() });
    task.recent.splice(0, task.recent.length - MAX_RECENT);
  }
  if (update.kind === "progress") {
    task.status = update.status ?? task.status;
    if (update.phase !== undefined) task.phase = update.phase;
    if (update.percentage !== undefined) task.percentage = update.percentage;
    return;
  }
  task.status = update.kind;
  task.completedAt = Date.now();
  if (update.kind === "completed") task.end = update.result === undefined ? {} : { result: update.result };
  if (update.kind === "failed") task.end = { error: update.error, ...defined({ errorCode: update.code }) };
  if (update.kind === "cancelled") task.end = update.reason === undefined ? {} : { cancellationReason: update.reason };
}

function infoOf(task: ClientTask): object {
  const { id, clientTaskId, description, displayName, status, connection, sequence, end } = task;
  const iso = (time: number): string => new Date(time).toISOString();
  const { extension } = connection;
  return {
    type: "client",
    id,
    clientTaskId,
    description,
    status,
    sequence,
    executionMode: "background",
    ...defined({ displayName }),
    owner: {
      participantId: connection.id,
      joinId: connection.id,
      kind: extension ? "extension" : "sdk",
      ...defined({ displayName: extension?.name }),
      presence: status === "orphaned" || connection.isClosed ? "disconnected" : "connected",
    },
    startedAt: iso(task.startedAt),
    updatedAt: iso(task.updatedAt),
    ...(task.completedAt !== undefined && { completedAt: iso(task.completedAt) }),
    ...(task.orphanedAt !== undefined && status === "orphaned" && { orphanedAt: iso(task.orphanedAt) }),
    ...(task.reclaimedAt !== undefined && { reclaimedAt: iso(task.reclaimedAt) }),
    activeTimeMs: (task.completedAt ?? Date.now()) - task.startedAt,
    canCancel: canCancel(task),
    ...end,
  };
}
