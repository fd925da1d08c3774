/**
 * Sessions as this server can act on them. One that no process has open is opened here; one that another server of this
 * machine has open is joined there; one of a database is joined through the gateway to its workers. Everything goes
 * through the contract that client programs use.
 */
import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { answeredById } from "../sdk/answers.ts";
import { Client } from "../sdk/client.ts";
import type { ResumeConfig } from "../sdk/config.ts";
import type { ClientSession } from "../sdk/session.ts";
import { joinableServer } from "../server/joinable.ts";
import { holdingProcess } from "./session-holder.ts";

export interface OpenSessionsOptions {
  /** The server inside this process. */
  readonly client: Client;
  readonly home: string;
  readonly cwd: string;
  /** Says which sessions are in a database, and connects with those who run them. */
  readonly database?: { has(sessionId: string): Promise<boolean>; client(): Promise<Client> } | undefined;
  onEvent(sessionId: string, event: SessionEvent): void;
  onOpen(sessionId: string): void;
  onClose(sessionId: string): void;
}

/** Reading files of the workspace is not asked about; the rules of the user still hold. */
const readsFreely = { approveAllReadPermissionRequests: true };

export class OpenSessions {
  readonly #options: OpenSessionsOptions;
  readonly #open = new Map<string, Promise<ClientSession>>();
  /** Connections to other processes of this machine, by pid. */
  readonly #peers = new Map<number, Client>();
  /** Sessions that were joined, and the processes that have them open. */
  readonly #joined = new Map<string, number>();

  constructor(options: OpenSessionsOptions) {
    this.#options = options;
  }

  isOpen(sessionId: string): boolean {
    return this.#open.has(sessionId);
  }

  /** Whether sessions of this process can be joined. */
  async canJoin(pid: number): Promise<boolean> {
    return (await joinableServer(this.#options.home, pid)) !== undefined;
  }

  async create(request: { readonly cwd?: string | undefined; readonly model?: string | undefined }): Promise<string> {
    const sessionId = crypto.randomUUID();
    const { client, cwd } = this.#options;
    const { continuePendingWork: _, ...config } = this.#config(sessionId);
    const opening = client.createSession({
      ...config,
      sessionId,
      workingDirectory: request.cwd ?? cwd,
      ...defined({ model: request.model }),
    });
    const session = await this.#keep(sessionId, opening);
    await session.request("session.permissions.configure", readsFreely);
    return sessionId;
  }

  /** Opens a session in another folder. Unfinished calls are not resumed. */
  async openIn(sessionId: string, workingDirectory: string): Promise<void> {
    const config = { ...this.#config(sessionId), continuePendingWork: false, workingDirectory };
    await this.#keep(sessionId, this.#options.client.resumeSession(sessionId, config));
  }

  /** Calls a method of a session, which is opened or joined first. */
  async request(sessionId: string, method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> {
    const session = await this.#ensure(sessionId);
    try {
      return await session.request(method, params);
    } catch (error) {
      if (!(await this.#isLost(sessionId))) throw error;
      return (await this.#ensure(sessionId)).request(method, params);
    }
  }

  /** Joins the session if another process has it open and lets others join. Returns whether it is open for this server. */
  async join(sessionId: string): Promise<boolean> {
    if (this.#open.has(sessionId)) return true;
    const peer = await this.#peerWith(sessionId);
    if (!peer || this.#open.has(sessionId)) return this.#open.has(sessionId);
    await this.#keep(sessionId, peer.resumeSession(sessionId, this.#handlers(sessionId)));
    return true;
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#peers.values(), this.#options.client].map((client) => client.stop()));
  }

  #ensure(sessionId: string): Promise<ClientSession> {
    return this.#open.get(sessionId) ?? this.#keep(sessionId, this.#opened(sessionId));
  }

  async #opened(sessionId: string): Promise<ClientSession> {
    const { client, home, database } = this.#options;
    if (database && (await database.has(sessionId))) {
      const gateway = await database.client();
      return gateway.resumeSession(sessionId, this.#handlers(sessionId));
    }
    const holder = await holdingProcess(home, sessionId);
    const config = this.#config(sessionId);
    if (holder && holder.pid !== process.pid) {
      const peer = await this.#peerWith(sessionId);
      if (peer) return peer.resumeSession(sessionId, this.#handlers(sessionId));
    }
    try {
      const session = await client.resumeSession(sessionId, config);
      await session.request("session.permissions.configure", readsFreely);
      return session;
    } catch (error) {
      if (!holder) throw error;
      throw new TroupeError(
        "failed",
        `The session is open in process ${holder.pid}${holder.isHere ? "" : " of another machine"}.`,
        {
          hint: "Answer there, or end that process and try again.",
          cause: error,
        },
      );
    }
  }

  async #keep(sessionId: string, opening: Promise<ClientSession>): Promise<ClientSession> {
    this.#open.set(sessionId, opening);
    try {
      const session = await opening;
      this.#options.onOpen(sessionId);
      return session;
    } catch (error) {
      this.#forget(sessionId);
      throw error;
    }
  }

  #forget(sessionId: string): void {
    this.#open.delete(sessionId);
    this.#joined.delete(sessionId);
    this.#options.onClose(sessionId);
  }

  /** For a session that is opened here. */
  #config(sessionId: string): ResumeConfig {
    return {
      ...this.#handlers(sessionId),
      streaming: true,
      enableConfigDiscovery: true,
      clientName: "web",
      memory: { enabled: true },
    };
  }

  /** For a session of another process. It has no option of the session: another value would reopen it without the rules of its clients. */
  #handlers(sessionId: string): ResumeConfig {
    return {
      continuePendingWork: true,
      onEvent: (event) => {
        this.#options.onEvent(sessionId, event);
        if (event.type === "session.shutdown") this.#forget(sessionId);
      },
      onPermissionRequest: () => ({ kind: "no-result" }),
      onUserInputRequest: answeredById,
      onElicitationRequest: answeredById,
      onExitPlanModeRequest: answeredById,
    };
  }

  /** The connection to another process that has the session open, if that process lets others join. */
  async #peerWith(sessionId: string): Promise<Client | undefined> {
    const { home } = this.#options;
    const holder = await holdingProcess(home, sessionId);
    if (!holder?.isHere || holder.pid === process.pid) return undefined;
    const server = await joinableServer(home, holder.pid);
    if (!server) return undefined;
    const known = this.#peers.get(holder.pid);
    const peer = known ?? new Client({ connection: { kind: "tcp", host: "127.0.0.1", ...server } });
    this.#peers.set(holder.pid, peer);
    this.#joined.set(sessionId, holder.pid);
    return peer;
  }

  /** Forgets sessions of a process that has ended. Returns whether this one was among them. */
  async #isLost(sessionId: string): Promise<boolean> {
    const pid = this.#joined.get(sessionId);
    if (pid === undefined) return false;
    const holder = await holdingProcess(this.#options.home, sessionId);
    if (holder?.pid === pid) return false;
    this.#peers.get(pid)?.forceStop();
    this.#peers.delete(pid);
    for (const [id, other] of this.#joined) if (other === pid) this.#forget(id);
    return true;
  }
}
