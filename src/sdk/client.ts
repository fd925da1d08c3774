import { defined } from "../lib/defined.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { RequestOptions } from "./answers.ts";
import type { ResumeConfig, SessionConfig } from "./config.ts";
import { type Rpc, rpcOf, type ServerRpc } from "./rpc.ts";
import { runListener } from "./run-listener.ts";
import { ClientSession } from "./session.ts";
import { spawnServer } from "./spawn.ts";
import { joinServer } from "./tcp.ts";
import { toWire } from "./to-wire.ts";
import type { Connection, Transport } from "./transport.ts";
import { Wire } from "./wire.ts";

export interface ClientOptions {
  /** How to reach a server. Default: a new troupe process. */
  readonly connection?: Connection;
  /** The server's working directory. Default: the current directory. */
  readonly workingDirectory?: string;
  /** The environment of the server's process. Default: this process's environment. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The folder of stored sessions. Default: `TROUPE_HOME`. */
  readonly home?: string;
  readonly logLevel?: "none" | "error" | "warning" | "info" | "debug" | "all";
}

export interface SessionMetadata {
  readonly sessionId: string;
  readonly startTime: string;
  readonly modifiedTime: string;
  readonly summary?: string;
  readonly name?: string;
  readonly context?: { readonly cwd: string; readonly repository?: string; readonly branch?: string };
}

export interface Lifecycle {
  readonly type:
    | "session.created"
    | "session.updated"
    | "session.deleted"
    | "session.foreground"
    | "session.background";
  readonly sessionId: string;
}

const PROTOCOL_VERSION = 3;
const GREETING_MS = 30_000;
const SHUTDOWN_MS = 10_000;
/** One connection to a server, and the sessions that this program holds through it. */
export class Client {
  readonly #options: ClientOptions;
  readonly #sessions = new Map<string, ClientSession>();
  readonly #lifecycle = new Set<(event: Lifecycle) => void>();
  #live: { readonly wire: Wire; readonly transport: Transport } | undefined;
  #starting: Promise<void> | undefined;
  #whyEnded: Error | undefined;

  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /** Connects. Other methods call it as needed; call it yourself to get connection errors early. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const transport = await this.#open();
    const wire = new Wire(transport, {
      answer: (method, params) => this.#answer(method, params),
      onNotification: (method, params) => this.#onNotification(method, params),
    });
    void transport.ended.then((why) => this.#over(new Error(why)));
    this.#live = { wire, transport };
    try {
      const token = transport.token === undefined ? {} : { token: transport.token };
      const greeting = await wire.ask("connect", token, { timeoutMs: GREETING_MS });
      const { protocolVersion } = greeting as { protocolVersion?: number };
      if (protocolVersion !== PROTOCOL_VERSION) {
        throw new Error(
          `The server speaks version ${protocolVersion} of the protocol, this client ${PROTOCOL_VERSION}.`,
        );
      }
    } catch (error) {
      transport.kill();
      throw this.#whyEnded ?? error;
    }
  }

  #open(): Promise<Transport> | Transport {
    const {
      connection = { kind: "stdio" },
      environment = process.env,
      home,
      logLevel,
      workingDirectory,
    } = this.#options;
    if (connection.kind === "custom") return connection.open();
    if (connection.kind === "tcp") return joinServer(connection);
    return spawnServer(connection, {
      environment: { ...environment, ...defined({ TROUPE_HOME: home }) },
      flags: logLevel === undefined ? [] : ["--log-level", logLevel],
      ...defined({ workingDirectory }),
    });
  }

  async createSession(config: SessionConfig = {}): Promise<ClientSession> {
    return this.#openSession("session.create", config.sessionId, config);
  }

  /** Resumes a closed session, or joins an open one beside its other clients. */
  async resumeSession(sessionId: string, config: ResumeConfig = {}): Promise<ClientSession> {
    return this.#openSession("session.resume", sessionId, config);
  }

  async #openSession(
    method: "session.create" | "session.resume",
    sessionId: string | undefined,
    config: SessionConfig & ResumeConfig,
  ): Promise<ClientSession> {
    await this.start();
    const session = new ClientSession({
      sessionId,
      config,
      request: (name, params, options) => this.request(name, params, options),
      onEnd: (ended) => {
        if (this.#sessions.get(ended.sessionId) === ended) this.#sessions.delete(ended.sessionId);
      },
    });
    const before = this.#sessions.get(session.sessionId);
    this.#sessions.set(session.sessionId, session);
    const cwd = this.#options.workingDirectory;
    const params = {
      ...defined({ workingDirectory: cwd }),
      ...toWire(config),
      sessionId: session.sessionId,
    };
    try {
      session.opened((await this.request(method, params)) as { workspacePath?: string });
    } catch (error) {
      if (before) this.#sessions.set(session.sessionId, before);
      else this.#sessions.delete(session.sessionId);
      throw error;
    }
    return session;
  }

  /** Calls any method of the protocol. */
  async request(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options?: RequestOptions,
  ): Promise<unknown> {
    if (this.#whyEnded) throw this.#whyEnded;
    await this.start();
    if (!this.#live) throw this.#whyEnded ?? new Error("The client was stopped.");
    return this.#live.wire.ask(method, params, options).catch((error: unknown) => {
      // A closed connection rejects pending requests. The reason it closed is more useful to the caller.
      throw this.#whyEnded ?? error;
    });
  }

  /** Server methods that belong to no session, by name. */
  readonly rpc: Rpc<ServerRpc> = rpcOf<ServerRpc>("", (method, params, options) =>
    this.request(method, params, options),
  );

  async listSessions(
    filter?: Readonly<Partial<Record<"cwd" | "gitRoot" | "repository" | "branch", string>>>,
  ): Promise<readonly SessionMetadata[]> {
    const found = await this.request("session.list", filter ? { filter } : {});
    return (found as { sessions: SessionMetadata[] }).sessions;
  }

  async getLastSessionId(): Promise<string | undefined> {
    return ((await this.request("session.getLastId")) as { sessionId?: string }).sessionId;
  }

  async deleteSession(sessionId: string): Promise<void> {
    const { success, error } = (await this.request("session.delete", { sessionId })) as {
      success: boolean;
      error?: string;
    };
    if (!success) throw new Error(error ?? `Session ${sessionId} could not be deleted.`);
    this.#sessions.get(sessionId)?.end(new Error(`Session ${sessionId} was deleted.`));
  }

  /**
   * Calls the listener when any session of the server is created, changed or deleted. Returns a function that removes
   * it.
   */
  onLifecycle(listener: (event: Lifecycle) => void): () => void {
    this.#lifecycle.add(listener);
    return () => void this.#lifecycle.delete(listener);
  }

  /**
   * Leaves every session and disconnects. A server process that this client started is shut down and has exited when
   * this resolves. Returns the errors on the way. Can be called again.
   */
  async stop(): Promise<readonly Error[]> {
    const live = this.#live;
    if (!live) return [];
    const errors: Error[] = [];
    const attempt = (work: Promise<unknown>): Promise<unknown> =>
      work.catch((error: unknown) => errors.push(asError(error)));
    await Promise.all([...this.#sessions.values()].map((session) => attempt(session.disconnect())));
    if (live.transport.isOwned) {
      await attempt(live.wire.ask("runtime.shutdown", {}, { timeoutMs: SHUTDOWN_MS }));
    }
    this.#over(new Error("The client was stopped."));
    await live.transport.close();
    return errors;
  }

  /** Ends everything immediately, without notifying the server. */
  forceStop(): void {
    const live = this.#live;
    this.#over(new Error("The client was stopped."));
    live?.transport.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Answers the server's requests to a session's program. */
  async #answer(method: string, params: unknown): Promise<unknown> {
    const { sessionId } = params as { sessionId?: string };
    const session = this.#sessions.get(sessionId ?? "");
    if (!session) throw new RpcError(rpcCodes.invalidParams, `This client does not hold session ${sessionId}.`);
    return session.answer(method, params as never);
  }

  #onNotification(method: string, params: unknown): void {
    if (method === "session.event") {
      const { sessionId, event } = params as { sessionId: string; event: SessionEvent };
      this.#sessions.get(sessionId)?.onEvent(event);
    } else if (method === "session.lifecycle") {
      for (const listener of [...this.#lifecycle]) runListener(() => listener(params as Lifecycle));
    }
  }

  #over(why: Error): void {
    this.#whyEnded ??= why;
    for (const session of [...this.#sessions.values()]) session.end(why);
    this.#live?.wire.close(why.message);
    this.#live = undefined;
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
