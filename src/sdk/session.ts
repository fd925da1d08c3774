import { randomUUID } from "node:crypto";
import type { Attachment, EventOf, EventType, SessionEvent } from "../protocol/event.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { AgentTree } from "./agent-tree.ts";
import { Answers, type Request } from "./answers.ts";
import type { ReasoningEffort, ResumeConfig, SessionConfig } from "./config.ts";
import { guarded } from "./guarded.ts";
import { type Rpc, rpcOf, type SessionRpc } from "./rpc.ts";

export interface MessageOptions {
  readonly prompt: string;
  readonly attachments?: readonly Attachment[];
  /** `enqueue` (default): after what is under way; `immediate`: steer it. */
  readonly mode?: "enqueue" | "immediate";
  readonly agentMode?: "interactive" | "plan" | "autopilot";
  /** Sent along with the model requests of this message. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
}

export interface WaitOptions {
  /** How long, in milliseconds; 30 minutes unless told. Giving up waiting stops nothing. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

/** Everything that goes with text that a user typed. */
export interface SubmitOptions extends WaitOptions {
  /** Text that is appended to the prompt and is never read as a command. */
  readonly data?: string;
  readonly attachments?: readonly Attachment[];
}

/** A command answers with a text of its own, or has the agent answer. */
export type Submitted =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "answered"; readonly message?: EventOf<"assistant.message"> };

interface EventPage {
  readonly events: readonly SessionEvent[];
  readonly cursor: string;
  readonly cursorStatus: "ok" | "expired";
  readonly hasMore: boolean;
}

/** How often `getEvents` begins anew for a session that is rewound meanwhile. */
const MAX_READINGS = 5;

const WAIT_MS = 30 * 60_000;

/** A session as a program sees it. Everything it does happens in the server; here are its words and its events. */
export class ClientSession {
  readonly sessionId: string;
  /** The agents at work, kept up to date with the events. */
  readonly agents = new AgentTree();
  readonly #request: Request;
  readonly #answers: Answers;
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  readonly #onEnd: (session: ClientSession) => void;
  #workspacePath: string | undefined;
  #ended: Error | undefined;

  /** Made by a `Client` only; it is there before the server knows of it, so that no event is missed. */
  constructor(parts: {
    sessionId: string | undefined;
    config: SessionConfig & ResumeConfig;
    request: Request;
    onEnd: (session: ClientSession) => void;
  }) {
    const { config, onEnd } = parts;
    this.sessionId = parts.sessionId ?? randomUUID();
    this.#request = (method, params) => {
      if (this.#ended) return Promise.reject(this.#ended);
      return parts.request(method, { sessionId: this.sessionId, ...params });
    };
    this.#answers = new Answers({ sessionId: this.sessionId, config, request: this.#request });
    this.#onEnd = onEnd;
    if (config.onEvent) this.#listeners.add(config.onEvent);
    this.rpc = rpcOf<SessionRpc>("session", this.#request);
  }

  /** Every method of a session by its name: `session.rpc.agent.select({ name })` calls `session.agent.select`. */
  readonly rpc: Rpc<SessionRpc>;

  /** The session's own folder, where the server has one. */
  get workspacePath(): string | undefined {
    return this.#workspacePath;
  }

  /** Hears events of one type, or all of them, until the returned function is called. */
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

  /** Resolves with the id of the message once it is on disk; it will be answered. */
  async send(message: string | MessageOptions): Promise<string> {
    const options = typeof message === "string" ? { prompt: message } : message;
    const { messageId } = (await this.#request("session.send", { ...options })) as { messageId: string };
    return messageId;
  }

  /**
   * Sends, waits until the session is idle (agents in the background included) and returns the main agent's last
   * message, or nothing when it had none. Rejects with what the session said went wrong, when the time is over, or when
   * the session or its connection ends.
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
   * Runs text as a user typed it: a slash command, a skill by its name, or a prompt. Waits like `sendAndWait` where the
   * agent answers. Rejects for a command that does not exist.
   */
  async submit(text: string, options: SubmitOptions = {}): Promise<Submitted> {
    const { data, attachments } = options;
    let said: string | undefined;
    const message = await this.#untilIdle(options, async () => {
      const params = { text, ...(data !== undefined && { data }), ...(attachments && { attachments }) };
      const result = (await this.#request("session.commands.submit", params)) as { kind: string; text?: string };
      if (result.kind === "sent") return "sent";
      said = result.text ?? "";
      return "over";
    });
    return said === undefined ? { kind: "answered", ...(message && { message }) } : { kind: "said", text: said };
  }

  /** `start` resolves with "sent" once a message is accepted, or with "over" when there is nothing to wait for. */
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
        // What came before the message was taken belongs to another one.
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

  /** Most who wait in vain wait for a question that nobody was there to answer. */
  #lateText(timeout: number): string {
    const late = `The session was not idle after ${timeout} ms.`;
    const kind = this.#answers.unanswered;
    if (kind === undefined) return late;
    return `${late} It waits for a permission (${kind}), and this client has no onPermissionRequest.`;
  }

  /** The events kept so far, in order. They are read page by page, so a history may have any size. */
  async getEvents(): Promise<SessionEvent[]> {
    for (let reading = 1; reading <= MAX_READINGS; reading++) {
      const events = await this.#readEvents();
      if (events) return events;
    }
    throw new Error(`The session was rewound ${MAX_READINGS} times while its events were read. Try again.`);
  }

  /** Returns undefined when a rewind took back events of an earlier page meanwhile. */
  async #readEvents(): Promise<SessionEvent[] | undefined> {
    const events: SessionEvent[] = [];
    const read = (query: Readonly<Record<string, unknown>>): Promise<EventPage> =>
      this.#request("session.eventLog.read", query) as Promise<EventPage>;
    const query = { max: 1_000, includeEphemeral: false };
    const tail = this.#request("session.eventLog.tail", {}) as Promise<{ cursor: string }>;
    let [page, { cursor }] = await Promise.all([read(query), tail]);
    const since = { cursor, types: ["session.snapshot_rewind"] };
    for (;;) {
      for (const event of page.events) events.push(event);
      if (!page.hasMore) return events;
      const [next, rewinds] = await Promise.all([read({ ...query, cursor: page.cursor }), read(since)]);
      if (next.cursorStatus === "expired" || rewinds.events.length > 0) return undefined;
      page = next;
    }
  }

  /** Stops the turn that is under way; the session stays usable. */
  async abort(): Promise<void> {
    await this.#request("session.abort", {});
  }

  async setModel(modelId: string, options: { readonly reasoningEffort?: ReasoningEffort } = {}): Promise<void> {
    await this.#request("session.model.switchTo", { modelId, ...options });
  }

  /** Leaves a line in the session's log for whoever watches. */
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

  /** Lets go of the session. When nobody else holds it, it ends; what it has written stays and can be resumed. */
  async disconnect(): Promise<void> {
    if (this.#ended) return;
    await this.#request("session.destroy", {});
    this.end(new Error(`Session ${this.sessionId} was disconnected.`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect();
  }

  readonly #waiters = new Set<(why: Error) => void>();

  /** For the client: what came over the wire. */
  hear(event: SessionEvent): void {
    this.agents.apply(event);
    for (const listener of [...this.#listeners]) guarded(() => listener(event));
    this.#answers.hear(event);
  }

  /** For the client: what is asked of this session's program. */
  answer(method: string, params: never): Promise<unknown> {
    const handler = Object.hasOwn(this.#answers.requests, method) ? this.#answers.requests[method] : undefined;
    if (!handler) return Promise.reject(new RpcError(rpcCodes.methodNotFound, `Unhandled method ${method}`));
    return handler(params);
  }

  /** For the client: the server has made it. */
  opened(result: { readonly workspacePath?: string }): void {
    this.#workspacePath = result.workspacePath;
  }

  /** For the client: from now on nothing more comes. Whoever waits is told why. */
  end(why: Error): void {
    if (this.#ended) return;
    this.#ended = why;
    for (const fail of [...this.#waiters]) fail(why);
    this.#onEnd(this);
  }
}
