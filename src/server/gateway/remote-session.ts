/**
 * One session of the workers with the clients attached to it here. Its events come from rows. Requests that the log does
 * not have as events are sent to the clients, and their answers become rows.
 */

import type { TraceContext } from "../../lib/trace-context.ts";
import type { EventData, EventType, SessionEvent } from "../../protocol/event.ts";
import { encodeFrame } from "../../protocol/rpc/frame.ts";
import type { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import type { RequestRow } from "../../runtime/cluster/requests.ts";
import type { Answerer } from "../../session/requests/broker.ts";
import type { AnyRequest } from "../../session/requests/requests.ts";
import { answerersOf } from "../clients/client-answerers.ts";
import type { ClientConnection } from "../connection.ts";
import { type CreateParams, traceOf } from "../sessions/session-options.ts";

/** Pause before a lost connection to the database is tried again. */
const RETRY_MS = 1_000;

export class RemoteSession {
  readonly id: string;
  readonly #sessions: RemoteSessions;
  readonly #clients = new Map<ClientConnection, readonly Answerer[]>();
  readonly #end = new AbortController();
  /** Requests that clients know of, with the end of their handlers. */
  readonly #asked = new Map<string, AbortController>();
  /** Works that were sent through this gateway, and whether an error was heard since. */
  readonly #sent = new Set<string>();
  /** Number of the last event that clients have received. */
  #position: number;
  /** The session is idle when clients have received events up to this one. */
  #idleAt: number | undefined;
  #trace: TraceContext | undefined;
  #isBusy = false;
  #hasFailed = false;

  constructor(id: string, sessions: RemoteSessions, position: number) {
    this.id = id;
    this.#sessions = sessions;
    this.#position = position;
    void this.#repeat(() => this.#follow());
    void this.#repeat(() => this.#watch());
  }

  get hasClients(): boolean {
    return this.#clients.size > 0;
  }

  /** Attaches a client. Requests that are open are repeated to it, except calls of its tools: they may be running. */
  async join(connection: ClientConnection, params: CreateParams): Promise<void> {
    const open = await this.#sessions.requests(this.id);
    this.#ask(open);
    this.#trace = traceOf(params);
    this.#clients.set(connection, answerersOf(connection, this.id, params));
    for (const row of open) {
      if (row.kind !== "external_tool") this.#announceRequest(row.data, [connection]);
      this.#hand(row, connection);
    }
  }

  leave(connection: ClientConnection): void {
    this.#clients.delete(connection);
  }

  /** A message without a trace belongs to that of the client that joined last. */
  async send(prompt: string, trace = this.#trace): Promise<string> {
    const workId = await this.#sessions.send(this.id, prompt, trace);
    this.#sent.add(workId);
    this.#isBusy = true;
    return workId;
  }

  close(): void {
    this.#end.abort();
    for (const asked of this.#asked.values()) asked.abort();
  }

  /** Repeats `work` until the session is closed: an unreachable database comes back. */
  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#end.signal.aborted) {
      await work().catch(async () => {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
        // Lines that were sent may be gone after a crash of the database: go on behind the last one.
        const { lastSeq } = await this.#sessions.state(this.id).catch(() => ({ lastSeq: this.#position }));
        this.#position = Math.min(this.#position, lastSeq);
      });
    }
  }

  async #follow(): Promise<void> {
    for await (const { seq, event } of this.#sessions.follow(this.id, this.#position, this.#end.signal)) {
      this.#position = seq;
      // The end of an activation is not the end of the session: clients would leave it.
      if (event.type !== "session.shutdown") this.#broadcast(event);
      if (event.type === "session.error") this.#hasFailed = true;
      await this.#tellIdle();
    }
  }

  async #watch(): Promise<void> {
    for await (const _ of this.#sessions.changes(this.id, this.#end.signal)) {
      const wasBusy = this.#isBusy;
      const { isBusy, lastSeq, requests } = await this.#sessions.state(this.id);
      this.#isBusy = isBusy;
      if (wasBusy && !isBusy) this.#idleAt = lastSeq;
      if (isBusy) this.#idleAt = undefined;
      this.#ask(requests);
      await this.#tellIdle();
    }
  }

  /** Tells clients that the session is idle, once they have all events of the work that has ended. */
  async #tellIdle(): Promise<void> {
    if (this.#idleAt === undefined || this.#position < this.#idleAt) return;
    this.#idleAt = undefined;
    const sent = [...this.#sent];
    this.#sent.clear();
    for (const workId of sent) {
      const outcome = await this.#sessions.outcomeOf(workId);
      const isFailure = outcome !== null && outcome.kind !== "done" && outcome.kind !== "aborted";
      if (!isFailure || this.#hasFailed) continue;
      const message = "message" in outcome ? outcome.message : "The worker was lost, and the job was not continued.";
      this.#announce("session.error", { errorType: "worker", message });
    }
    this.#hasFailed = false;
    this.#announce("session.idle", {});
  }

  /** Sends new requests to the clients, and ends the handlers of those that have ended. */
  #ask(requests: readonly RequestRow[]): void {
    const open = new Set(requests.map(({ id }) => id));
    for (const [id, asked] of this.#asked) {
      if (open.has(id)) continue;
      asked.abort();
      this.#asked.delete(id);
    }
    for (const row of requests) {
      if (this.#asked.has(row.id)) continue;
      this.#asked.set(row.id, new AbortController());
      // The log has permissions and calls of client tools as events.
      if (row.kind !== "permission" && row.kind !== "external_tool") this.#announceRequest(row.data, this.#connections);
      for (const connection of this.#connections) this.#hand(row, connection);
    }
  }

  get #connections(): readonly ClientConnection[] {
    return [...this.#clients.keys()];
  }

  /** Lets a client answer by the callback that it has for this kind, if any. */
  #hand(row: RequestRow, connection: ClientConnection): void {
    const asked = this.#asked.get(row.id);
    for (const answerer of this.#clients.get(connection) ?? []) {
      if (!asked || !answerer.kinds.includes(row.kind)) continue;
      const answering = answerer.handle?.(row.data, asked.signal) ?? Promise.resolve(undefined);
      answering.then((answer) => answer && this.#sessions.answer({ ...keyOf(row), answer })).catch(() => undefined); // another client, or a later one, can answer
    }
  }

  #announceRequest({ kind, ...data }: AnyRequest, to: readonly ClientConnection[]): void {
    const type = `${kind}.requested` as EventType;
    this.#send(passing(type, data as never), to);
  }

  #announce<T extends EventType>(type: T, data: EventData<T>): void {
    this.#broadcast(passing(type, data));
  }

  #broadcast(event: SessionEvent): void {
    this.#send(event, this.#connections);
  }

  #send(event: SessionEvent, to: readonly ClientConnection[]): void {
    if (to.length === 0) return;
    const frame = encodeFrame({ jsonrpc: "2.0", method: "session.event", params: { sessionId: this.id, event } });
    for (const connection of to) connection.tell(frame, { sessionId: this.id, isRepeatedLater: false });
  }
}

const keyOf = ({ sessionId, id, kind }: RequestRow) => ({ sessionId, requestId: id, kind });

/** Creates an event that is not stored. */
function passing<T extends EventType>(type: T, data: EventData<T>): SessionEvent {
  const event = { id: crypto.randomUUID(), timestamp: new Date().toISOString(), parentId: null, ephemeral: true };
  return { ...event, type, data } as unknown as SessionEvent;
}
