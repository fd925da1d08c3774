/**
 * The server for sessions that workers run: the same protocol, over a database instead of sessions of this process. This
 * folder has the server, its methods, and the sessions with their clients. Nothing of it is loaded by other servers.
 */

import type { Readable, Writable } from "node:stream";
import { TroupeError } from "../../protocol/errors.ts";
import { RpcError, rpcCodes } from "../../protocol/rpc/errors.ts";
import type { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import { ClientConnection } from "../connection.ts";
import { answerTo, Dispatcher } from "../dispatch.ts";
import { PendingConnections } from "../pending-connections.ts";
import type { Servable } from "../serve.ts";
import type { CreateParams, ResumeParams } from "../sessions/session-options.ts";
import { gatewayMethods } from "./gateway-methods.ts";
import { remoteOptions } from "./remote-options.ts";
import { RemoteSession } from "./remote-session.ts";

export interface GatewayOptions {
  readonly sessions: RemoteSessions;
  /** Writes a message for the user to stderr. */
  say(message: string): void;
}

/** Methods that a client may call before it has presented its token. */
const greetings = new Set(["connect"]);
const MAX_CONNECTIONS = 256;

export class Gateway implements Servable {
  readonly sessions: RemoteSessions;
  readonly #options: GatewayOptions;
  readonly #dispatcher = new Dispatcher(gatewayMethods);
  readonly #pending: PendingConnections;
  readonly #connections = new Set<ClientConnection>();
  readonly #open = new Map<string, RemoteSession>();
  #connected = 0;
  #isShuttingDown = false;
  onLastGone: () => void = () => undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.sessions = options.sessions;
    this.#pending = new PendingConnections(options.say);
  }

  get isShuttingDown(): boolean {
    return this.#isShuttingDown;
  }

  get hasClients(): boolean {
    return this.#connections.size > 0;
  }

  accept(streams: { input: Readable; output: Writable; token?: string }): ClientConnection | undefined {
    if (streams.token === undefined && this.#connections.size >= MAX_CONNECTIONS) return undefined;
    const connection = new ClientConnection({
      ...streams,
      id: `c${++this.#connected}`,
      handle: (from, name, params, signal) => this.#handle(from, name, params, signal),
      onAdmitted: (admitted) => this.#admitted(admitted),
      onClose: (gone) => this.#gone(gone),
      onTrouble: (message, from) => (from.isAdmitted ? this.#options.say(message) : this.#pending.report(message)),
    });
    if (connection.isAdmitted) this.#connections.add(connection);
    else this.#pending.add(connection);
    return connection;
  }

  /** Creates a session. Nothing of it runs before its first message. */
  async create(connection: ClientConnection, params: CreateParams): Promise<object> {
    const sessionId = params.sessionId ?? crypto.randomUUID();
    const isNew = await this.sessions.configure(sessionId, remoteOptions(params));
    const session = await this.#opened(sessionId, isNew ? 0 : undefined);
    await this.#join(session, connection, params);
    return describeRemote(sessionId, params);
  }

  /** Joins a session of the workers. Its pending requests stay, whatever the client says about pending work. */
  async resume(connection: ClientConnection, params: ResumeParams): Promise<object> {
    if (!(await this.sessions.exists(params.sessionId))) throw notFound(params.sessionId);
    await this.sessions.extend(params.sessionId, remoteOptions(params));
    await this.#join(await this.#opened(params.sessionId), connection, params);
    return describeRemote(params.sessionId, params);
  }

  async require(sessionId: string): Promise<RemoteSession> {
    const open = this.#open.get(sessionId);
    if (open) return open;
    throw notFound(sessionId);
  }

  leave(connection: ClientConnection, sessionId: string): void {
    const session = this.#open.get(sessionId);
    session?.leave(connection);
    if (!session || session.hasClients) return;
    session.close();
    this.#open.delete(sessionId);
  }

  /** Leaves all sessions. They continue on the workers. */
  async shutDown(): Promise<void> {
    this.#isShuttingDown = true;
    for (const session of this.#open.values()) session.close();
    this.#open.clear();
  }

  async close(): Promise<void> {
    await this.shutDown();
    this.#pending.closeAll();
    for (const connection of [...this.#connections]) connection.close();
    await this.sessions.close();
  }

  async #opened(sessionId: string, position?: number): Promise<RemoteSession> {
    const from = position ?? (await this.sessions.state(sessionId)).lastSeq;
    const session = this.#open.get(sessionId) ?? new RemoteSession(sessionId, this.sessions, from);
    this.#open.set(sessionId, session);
    return session;
  }

  async #join(session: RemoteSession, connection: ClientConnection, params: CreateParams): Promise<void> {
    connection.requireConnected();
    await session.join(connection, params);
    // It may have disconnected meanwhile.
    if (connection.isClosed) this.leave(connection, session.id);
  }

  #admitted(connection: ClientConnection): void {
    if (this.#connections.size >= MAX_CONNECTIONS)
      throw new RpcError(rpcCodes.refused, `TOO_MANY_CLIENTS: the limit is ${MAX_CONNECTIONS}.`);
    this.#pending.delete(connection);
    this.#connections.add(connection);
  }

  #gone(connection: ClientConnection): void {
    this.#pending.delete(connection);
    if (!this.#connections.delete(connection)) return;
    for (const id of [...this.#open.keys()]) this.leave(connection, id);
    if (this.#connections.size === 0) this.onLastGone();
  }

  async #handle(connection: ClientConnection, name: string, given: unknown, signal: AbortSignal): Promise<unknown> {
    if (!connection.isAdmitted && !greetings.has(name)) {
      throw new RpcError(rpcCodes.refused, "AUTHENTICATION_FAILED: send the connection token with `connect` first.");
    }
    if (this.#isShuttingDown && name !== "runtime.shutdown")
      throw new RpcError(rpcCodes.refused, "SERVER_SHUTTING_DOWN");
    const { method, params } = this.#dispatcher.find(name, given);
    try {
      return await method.run(params, { server: this, gateway: this, connection, signal });
    } catch (error) {
      throw answerTo(name, error, (defect) =>
        this.#options.say(`${name}: ${defect instanceof Error ? (defect.stack ?? defect.message) : String(defect)}`),
      );
    }
  }
}

const describeRemote = (sessionId: string, params: CreateParams): object => ({
  sessionId,
  capabilities: { ui: { elicitation: params.requestElicitation ?? false, mcpApps: false }, extensions: false },
});

function notFound(sessionId: string): TroupeError {
  return new TroupeError("usage", `Session not found: ${sessionId}`);
}
