/**
 * The server folder: the runtime for programs, as JSON-RPC over a pipe or a local port, in the protocol of the SDK. A
 * method is an entry in a file of `methods/`. `hub` holds the sessions and their clients, `connection` is one client,
 * `dispatch` maps requests to methods.
 */

import type { Readable, Writable } from "node:stream";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { ClientConnection, type ClientConnectionOptions } from "./connection.ts";
import { answerTo, Dispatcher } from "./dispatch.ts";
import { requireRight } from "./extensions/extension-rights.ts";
import { Hub } from "./hub.ts";
import { leaveConsolidation } from "./leave-consolidation.ts";
import { methods } from "./methods/list.ts";
import type { ServerOptions, ServerParts } from "./parts.ts";
import { PendingConnections } from "./pending-connections.ts";
import { warnUnknown } from "./sessions/unused-options.ts";

/** Methods that a client may call before it has presented its token. */
const greetings = new Set(["connect"]);
const MAX_CONNECTIONS = 64;

export class Server implements ServerParts {
  readonly runtime: Runtime;
  readonly options: ServerOptions;
  readonly #hub: Hub;
  readonly #dispatcher = new Dispatcher(methods);
  readonly #pending: PendingConnections;
  #shutDown: Promise<void> | undefined;
  #connected = 0;
  /** Called when the last client has disconnected. */
  onLastGone: () => void = () => undefined;

  constructor(options: ServerOptions) {
    this.options = options;
    this.runtime = options.runtime;
    this.#pending = new PendingConnections(options.say);
    const { program, environment } = options;
    this.#hub = new Hub({
      ...options,
      beforeClose: async (hosted) => {
        // A separate process cannot read a session that a client stores.
        if (program && !this.#hub.storageClient.isRegistered)
          await leaveConsolidation(hosted, { program, environment });
      },
      acceptExtension: (streams, extension) =>
        this.#newConnection({ ...streams, extension }, (gone) => this.#hub.extensionGone(gone)),
    });
  }

  get isShuttingDown(): boolean {
    return this.#shutDown !== undefined;
  }

  get hasClients(): boolean {
    return this.#hub.connections.size > 0;
  }

  /**
   * Accepts a connection. With a token, it becomes a client when it presents the token, and is refused then if there
   * are too many clients. Without a token, returns undefined if there are too many clients.
   */
  accept(streams: { input: Readable; output: Writable; token?: string }): ClientConnection | undefined {
    if (streams.token === undefined && this.#isFull) return undefined;
    const connection = this.#newConnection(streams, (gone) => {
      this.#pending.delete(gone);
      if (!gone.isAdmitted) return;
      this.#hub.disconnect(gone);
      if (this.#hub.connections.size === 0) this.onLastGone();
    });
    if (connection.isAdmitted) this.#hub.connect(connection);
    else this.#pending.add(connection);
    return connection;
  }

  get #isFull(): boolean {
    return this.#hub.connections.size >= MAX_CONNECTIONS;
  }

  #admitted(connection: ClientConnection): void {
    if (this.#isFull) throw new RpcError(rpcCodes.refused, `TOO_MANY_CLIENTS: the limit is ${MAX_CONNECTIONS}.`);
    this.#pending.delete(connection);
    this.#hub.connect(connection);
  }

  #newConnection(
    streams: Pick<ClientConnectionOptions, "input" | "output" | "token" | "extension">,
    onClose: ClientConnectionOptions["onClose"],
  ): ClientConnection {
    return new ClientConnection({
      ...streams,
      id: `c${++this.#connected}`,
      handle: (from, name, params, signal) => this.#handle(from, name, params, signal),
      onAdmitted: (admitted) => this.#admitted(admitted),
      onClose,
      onTrouble: (message, from) => (from.isAdmitted ? this.options.say(message) : this.#pending.report(message)),
    });
  }

  shutDown(): Promise<void> {
    // The client that requested it may end this process as soon as it has the response.
    this.#shutDown ??= this.#hub.close().then(() => this.runtime.flush());
    return this.#shutDown;
  }

  /** Call after `shutDown`: closes the connections and releases the resources of the process. */
  async close(): Promise<void> {
    await this.shutDown();
    this.#pending.closeAll();
    for (const connection of [...this.#hub.connections]) connection.close();
    await this.runtime.close();
  }

  async #handle(connection: ClientConnection, name: string, given: unknown, signal: AbortSignal): Promise<unknown> {
    if (!connection.isAdmitted && !greetings.has(name)) {
      throw new RpcError(rpcCodes.refused, "AUTHENTICATION_FAILED: send the connection token with `connect` first.");
    }
    if (this.isShuttingDown && name !== "runtime.shutdown")
      throw new RpcError(rpcCodes.refused, "SERVER_SHUTTING_DOWN");
    requireRight(connection, name, given);
    const { method, params, unknown } = this.#dispatcher.find(name, given);
    try {
      const result = await method.run(params, { server: this, hub: this.#hub, connection, signal });
      warnUnknown({ name, unknown, find: (id) => this.#hub.find(id)?.session }, params, result);
      return result;
    } catch (error) {
      throw answerTo(name, error, (defect) => this.#report(name, defect));
    }
  }

  #report(name: string, error: unknown): void {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.options.say(`this is a defect in troupe, please report it: ${name}: ${detail}`);
  }
}
