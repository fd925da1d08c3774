import { randomUUID } from "node:crypto";
import { defined } from "../lib/defined.ts";
import type { Attachment, EventOf, EventType, SessionEvent } from "../protocol/event.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { AgentTree } from "./agent-tree.ts";
import { Answers, type Request } from "./answers.ts";
import type { ReasoningEffort, ResumeConfig, SessionConfig } from "./config.ts";
import { type Rpc, rpcOf, type SessionRpc } from "./rpc.ts";
import { runListener } from "./run-listener.ts";

export interface MessageOptions {
  readonly prompt: string;
  readonly attachments?: readonly Attachment[];
  /** `enqueue` (default): after the current answer. `immediate`: steers the current answer. */
  readonly mode?: "enqueue" | "immediate";
  readonly agentMode?: "interactive" | "plan" | "autopilot";
  /** Headers for the model requests of this message. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
}

export interface WaitOptions {
  /** Timeout in milliseconds. Default: 30 minutes. A timeout ends the wait, not the work. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

/** Options for text that a user typed. */
export interface SubmitOptions extends WaitOptions {
  /** Text that is appended to the prompt and is never parsed as a command. */
  readonly data?: string;
  readonly attachments?: readonly Attachment[];
}

/** A command returns its own text, or makes the agent answer. */
export type Submitted =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "answered"; readonly message?: EventOf<"assistant.message"> };

export interface EventReading {
  onPage?(events: readonly SessionEvent[]): void;
}

interface EventPage {
  readonly events: readonly SessionEvent[];
  readonly cursor: string;
  readonly cursorStatus: "ok" | "expired";
  readonly hasMore: boolean;
}

/** How often `getEvents` starts again if the session is rewound meanwhile. */
const MAX_READINGS = 5;

const WAIT_MS = 30 * 60_000;

/** A session as a program sees it. The work happens in the server; this class sends requests and receives events. */
export class ClientSession {
  readonly sessionId: string;
  /** The session's agents, updated with every event. */
  readonly agents = new AgentTree();
  readonly #request: Request;
  readonly #answers: Answers;
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  readonly #onEnd: (session: ClientSession) => void;
  #workspacePath: string | undefined;
  #ended: Error | undefined;

  /** Only a `Client` creates it, before the server knows the session, so that no event is missed. */
  constructor(parts: {
    sessionId: string | undefined;
    config: SessionConfig & ResumeConfig;
    request: Request;
    onEnd: (session: ClientSession) => void;
  }) {
    const { config, onEnd } = parts;
    this.sessionId = parts.sessionId ?? randomUUID();
    this.#request = (method, params, options) => {
      if (this.#ended) return Promise.reject(this.#ended);
      return parts.request(method, { sessionId: this.sessionId, ...params }, options);
    };
    this.#answers = new Answers({ sessionId: this.sessionId, config, request: this.#request });
    this.#onEnd = onEnd;
    if (config.onEvent) this.#listeners.add(config.onEvent);
    this.rpc = rpcOf<SessionRpc>("session", this.#request);
  }

  /** Every method of a session by name: `session.rpc.agent.select({ name })` calls `session.agent.select`. */
  readonly rpc: Rpc<SessionRpc>;

  /** The session's own folder, if the server has one. */
  get workspacePath(): string | undefined {
    return this.#workspacePath;
  }

  /** Subscribes to events of one type, or to all. Returns a function that unsubscribes. */
  on<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void;
  on(listener: (event: SessionEvent) => void): () => void;
  on(typeOrListener: EventType | ((event: SessionEvent) => void), typed?: (event: never) => void): () => void {
    const listener =
      typeof typeOrListener === "function"
        ? typeOrListener
        : (event: SessionEvent): void => {
            if (event.type === typeOrListener) typed?.(event as never);
          };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves with the message id once the message is on disk. It will be answered. */
  async send(message: string | MessageOptions): Promise<string> {
    const options = typeof message === "string" ? { prompt: message } : message;
    const { messageId } = (await this.#request("session.send", { ...options })) as { messageId: string };
    return messageId;
  }

  /**
   * Sends a message and waits until the session is idle, background agents included. Returns the main agent's last
   * message, or undefined if it had none. Rejects with the session's error, on a timeout, and if the session or its
   * connection ends.
   */
  async sendAndWait(
    message: string | MessageOptions,
    options: WaitOptions | number = {},
  ): Promise<EventOf<"assistant.message"> | undefined> {
    const wait = typeof options === "number" ? { timeout: options } : options;
    return this.#untilIdle(wait, async () => {
      await this.send(message);
      return "sent";
    });
  }

  /**
   * Runs text as if a user typed it: a slash command, a skill by its name, or a prompt. Waits like `sendAndWait` if the
   * agent answers. Rejects for a command that does not exist.
   */
  async submit(text: string, options: SubmitOptions = {}): Promise<Submitted> {
    const { data, attachments } = options;
    let said: string | undefined;
    const message = await this.#untilIdle(options, async () => {
      const params = { text, ...defined({ data, attachments }) };
      const result = (await this.#request("session.commands.submit", params)) as { kind: string; text?: string };
      if (result.kind === "sent") return "sent";
      said = result.text ?? "";
      return "over";
    });
    return said === undefined ? { kind: "answered", ...defined({ message }) } : { kind: "said", text: said };
  }

  /** `start` resolves with "sent" when a message is accepted, or with "over" if there is nothing to wait for. */
  async #untilIdle(
    { timeout = WAIT_MS, signal }: WaitOptions,
    start: () => Promise<"sent" | "over">,
  ): Promise<EventOf<"assistant.message"> | undefined> {
    signal?.throwIfAborted();
    let isAccepted = false;
    let last: EventOf<"assistant.message"> | undefined;
    let error: Error | undefined;
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        clearTimeout(timer);
        unsubscribe();
        this.#waiters.delete(fail);
        signal?.removeEventListener("abort", onAbort);
        how();
      };
      const fail = (why: unknown): void => settle(() => reject(why));
      const onAbort = (): void => fail(signal?.reason);
      const timer = setTimeout(() => fail(new Error(this.#lateText(timeout))), timeout);
      const unsubscribe = this.on((event) => {
        // Events before the message was accepted belong to another message.
        if (!isAccepted || event.agentId !== undefined) return;
        if (event.type === "assistant.message") last = event;
        if (event.type === "session.error") error = new Error(event.data.message);
        if (event.type === "session.idle") settle(() => (error ? reject(error) : resolve(last)));
      });
      this.#waiters.add(fail);
      signal?.addEventListener("abort", onAbort, { once: true });
      start().then((how) => {
        if (how === "over") settle(() => resolve(undefined));
        isAccepted = true;
      }, fail);
    });
  }

  /** A common cause of a timeout is a permission request that no client answers. */
  #lateText(timeout: number): string {
    const late = `The session was not idle after ${timeout} ms.`;
    const kind = this.#answers.unanswered;
    if (kind === undefined) return late;
    return `${late} It is waiting for a permission (${kind}), and this client has no onPermissionRequest.`;
  }

  /**
   * Returns the stored events, in order. They are read in pages, so a history may have any size. `onPage` gets the events so
   * far after each page and ends the reading if it throws; after a rewind it gets a new array, from the beginning.
   */
  async getEvents({ onPage }: EventReading = {}): Promise<SessionEvent[]> {
    for (let reading = 1; reading <= MAX_READINGS; reading++) {
      const events = await this.#readEvents(onPage);
      if (events) return events;
    }
    throw new Error(`The session was rewound ${MAX_READINGS} times while its events were read. Try again.`);
  }

  /** Returns undefined if a rewind removed events of an earlier page meanwhile. */
  async #readEvents(onPage: EventReading["onPage"]): Promise<SessionEvent[] | undefined> {
    const events: SessionEvent[] = [];
    const read = (query: Readonly<Record<string, unknown>>): Promise<EventPage> =>
      this.#request("session.eventLog.read", query) as Promise<EventPage>;
    const query = { max: 1_000, includeEphemeral: false };
    const tail = this.#request("session.eventLog.tail", {}) as Promise<{ cursor: string }>;
    let [page, { cursor }] = await Promise.all([read(query), tail]);
    const since = { cursor, types: ["session.snapshot_rewind"] };
    for (;;) {
      for (const event of page.events) events.push(event);
      onPage?.(events);
      if (!page.hasMore) return events;
      const [next, rewinds] = await Promise.all([read({ ...query, cursor: page.cursor }), read(since)]);
      if (next.cursorStatus === "expired" || rewinds.events.length > 0) return undefined;
      page = next;
    }
  }

  /** Stops the current answer. The session stays usable. */
  async abort(): Promise<void> {
    await this.#request("session.abort", {});
  }

  async setModel(modelId: string, options: { readonly reasoningEffort?: ReasoningEffort } = {}): Promise<void> {
    await this.#request("session.model.switchTo", { modelId, ...options });
  }

  /** Adds a line to the session's log for all its clients. */
  async log(
    message: string,
    options: { readonly level?: "info" | "warning" | "error"; readonly ephemeral?: boolean } = {},
  ): Promise<void> {
    await this.#request("session.log", { message, ...options });
  }

  /** Calls a method that `rpc` has no type for. */
  request(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    return this.#request(method, params);
  }

  /** Leaves the session. It is closed if no other client holds it. Its stored data stays and it can be resumed. */
  async disconnect(): Promise<void> {
    if (this.#ended) return;
    await this.#request("session.destroy", {});
    this.end(new Error(`Session ${this.sessionId} was disconnected.`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect();
  }

  readonly #waiters = new Set<(why: Error) => void>();

  /** For the client: an event arrived. */
  onEvent(event: SessionEvent): void {
    this.agents.apply(event);
    for (const listener of [...this.#listeners]) runListener(() => listener(event));
    this.#answers.onEvent(event);
  }

  /** For the client: handles a request to this session's program. */
  answer(method: string, params: never): Promise<unknown> {
    const handler = Object.hasOwn(this.#answers.requests, method) ? this.#answers.requests[method] : undefined;
    if (!handler) return Promise.reject(new RpcError(rpcCodes.methodNotFound, `Unhandled method ${method}`));
    return handler(params);
  }

  /** For the client: the server has opened the session. */
  opened(result: { readonly workspacePath?: string }): void {
    this.#workspacePath = result.workspacePath;
  }

  /** For the client: ends the session. Pending waits reject with this error. */
  end(why: Error): void {
    if (this.#ended) return;
    this.#ended = why;
    for (const fail of [...this.#waiters]) fail(why);
    this.#onEnd(this);
  }
}
