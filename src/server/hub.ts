/**
 * Which sessions are open, and who is attached to which. A session is opened once however many ask for it at the same time,
 * stays open while someone is attached, and is kept on disk whatever happens to its clients.
 */
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import type { Runtime, SessionRequest } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { Connection } from "./connection.ts";
import { LiveSession } from "./live-session.ts";
import { type CreateParams, type ResumeParams, sessionRequest } from "./session-options.ts";

export interface HubOptions {
  readonly runtime: Runtime;
  /** What the command line says of every session. */
  readonly defaults: Omit<SessionRequest, "cwd">;
  readonly cwd: string;
  /** A session that nobody has used for so long is closed. */
  readonly idleMs?: number;
}

type LifecycleType = "session.created" | "session.updated" | "session.deleted";

/** A session without clients is kept in memory this long, for them to come back to. */
const DETACHED_MS = 30 * 60_000;
const LOOK_MS = 1_000;

export class Hub {
  readonly #options: HubOptions;
  readonly #connections = new Set<Connection>();
  readonly #live = new Map<string, LiveSession>();
  readonly #opening = new Map<string, Promise<LiveSession>>();
  #look: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  connect(connection: Connection): void {
    this.#connections.add(connection);
  }

  /** What it was attached to stays open, for it or another to come back to. */
  disconnect(connection: Connection): void {
    this.#connections.delete(connection);
    for (const live of this.#live.values()) live.detach(connection);
    this.#watch();
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  require(sessionId: string): LiveSession {
    const live = this.#live.get(sessionId);
    if (!live) throw notFound(sessionId);
    return live;
  }

  async create(connection: Connection, params: CreateParams): Promise<object> {
    const sessionId = params.sessionId ?? crypto.randomUUID();
    // A client that chooses an id twice means the same session.
    const isKept = this.#live.has(sessionId) || this.#opening.has(sessionId) || (await this.#isKept(sessionId));
    if (isKept) return this.resume(connection, { ...params, sessionId });
    const live = await this.#open(sessionId, connection, () =>
      this.#options.runtime.createSession({ ...this.#request(params), sessionId }),
    );
    this.#tellAll("session.created", live);
    return this.#described(live);
  }

  async resume(connection: Connection, params: ResumeParams): Promise<object> {
    const { sessionId } = params;
    const open = this.#live.get(sessionId) ?? (await this.#opening.get(sessionId));
    if (open) {
      open.attach(connection);
      return this.#described(open);
    }
    if (!(await this.#isKept(sessionId))) throw notFound(sessionId);
    const live = await this.#open(sessionId, connection, () =>
      this.#options.runtime.resumeSession(sessionId, this.#request(params)),
    );
    return this.#described(live);
  }

  /** This client has done with the session; the last one closes it. */
  async leave(connection: Connection, sessionId: string): Promise<void> {
    const live = this.#live.get(sessionId);
    if (!live) return;
    live.detach(connection);
    if (live.attached.size > 0) return;
    // Its last words are for whoever was there last.
    live.attach(connection);
    await this.#close(live);
  }

  async delete(sessionId: string): Promise<{ success: boolean; error?: string }> {
    const live = this.#live.get(sessionId);
    const isKept = await this.#isKept(sessionId);
    if (!live && !isKept) return { success: false, error: `Session file not found for ${sessionId}` };
    if (live) await this.#close(live);
    if (await this.#isKept(sessionId)) await this.#options.runtime.store.remove(sessionId);
    this.#tellAll("session.deleted", { id: sessionId });
    return { success: true };
  }

  /** Closes every session; none is opened after. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#look);
    await Promise.allSettled(this.#opening.values());
    await Promise.allSettled([...this.#live.values()].map((live) => this.#close(live)));
  }

  async #isKept(sessionId: string): Promise<boolean> {
    return (await this.#options.runtime.store.revision(sessionId)) !== undefined;
  }

  #request(params: CreateParams): SessionRequest {
    return sessionRequest(params, { cwd: this.#options.cwd, ...this.#options.defaults });
  }

  async #open(sessionId: string, connection: Connection, make: () => Promise<Session>): Promise<LiveSession> {
    if (this.#isClosing) throw new TroupeError("failed", "The server is shutting down.");
    const opening = make().then(async (session) => {
      const live = new LiveSession(session, { onKept: () => this.#tellAll("session.updated", live) });
      this.#live.set(sessionId, live);
      live.attach(connection);
      await live.listen();
      return live;
    });
    this.#opening.set(sessionId, opening);
    try {
      return await opening;
    } finally {
      this.#opening.delete(sessionId);
      this.#watch();
    }
  }

  async #close(live: LiveSession): Promise<void> {
    this.#live.delete(live.id);
    await live.close();
  }

  #described({ session }: LiveSession): object {
    return {
      sessionId: session.id,
      workspacePath: session.settings.log.directory,
      capabilities: { ui: { elicitation: false, mcpApps: false } },
    };
  }

  #tellAll(type: LifecycleType, live: LiveSession | { readonly id: string }): void {
    const metadata = "session" in live ? lifecycleMetadata(live.session.events, live.session.title) : undefined;
    for (const connection of this.#connections) {
      if (!connection.isAdmitted) continue;
      connection.notify("session.lifecycle", { type, sessionId: live.id, ...(metadata && { metadata }) });
    }
  }

  /** Looks after sessions that nobody uses, while there are any. */
  #watch(): void {
    if (this.#look !== undefined || this.#isClosing) return;
    this.#look = setInterval(() => this.#closeUnused(), LOOK_MS);
    this.#look.unref();
  }

  #closeUnused(): void {
    const now = performance.now();
    for (const live of [...this.#live.values()]) {
      const limit = this.#options.idleMs ?? (live.attached.size === 0 ? DETACHED_MS : Number.POSITIVE_INFINITY);
      if (now - live.touchedAt > limit && !live.session.isPending) void this.#close(live);
    }
    if (this.#live.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }
}

function lifecycleMetadata(events: readonly SessionEvent[], title: string | undefined): object | undefined {
  const [first, last] = [events[0], events.at(-1)];
  if (!first || !last) return undefined;
  return {
    startTime: first.timestamp,
    modifiedTime: last.timestamp,
    ...(title !== undefined && { summary: title }),
  };
}

const notFound = (sessionId: string): TroupeError => new TroupeError("usage", `Session not found: ${sessionId}`);
