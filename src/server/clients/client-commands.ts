/**
 * Commands of clients: those that a client provides and runs, and those queued until the agent is idle. Unknown
 * commands are offered to clients that registered an interest.
 */
import { type Deferred, deferred } from "../../lib/deferred.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { readTyped, sendingOf, sendOn, type Typed } from "../../runtime/submit.ts";
import type { Session } from "../../session/session.ts";
import type { Clients } from "./clients.ts";

export interface QueuedCommand {
  readonly id: string;
  readonly command: string;
}

/** A client's answer to a command that it was offered. */
export interface QueuedAnswer {
  readonly handled: boolean;
  readonly stopProcessingQueue?: boolean | undefined;
}

/** Timeout for a command that a user started. */
const TIMEOUT_MS = 60 * 60 * 1000;
const MAX_QUEUED = 1000;
/** Maximum number of commands whose prompts a client has not sent yet, or may send again. */
const MAX_INVOKED = 20;

type Prompted = Extract<Typed, { kind: "prompt" }>;

export class ClientCommands {
  readonly #session: Session;
  readonly #clients: Clients;
  /** Whether a client handles unknown commands. */
  readonly #isOffered: () => boolean;
  readonly #pending = new Map<string, Deferred<string | undefined>>();
  readonly #offered = new Map<string, Deferred<QueuedAnswer>>();
  #queue: QueuedCommand[] = [];
  #invoked: readonly Prompted[] = [];
  #working: Promise<void> | undefined;
  #isClosed = false;

  constructor(session: Session, clients: Clients, isOffered: () => boolean) {
    this.#session = session;
    this.#clients = clients;
    this.#isOffered = isOffered;
  }

  get queued(): readonly QueuedCommand[] {
    return this.#queue;
  }

  /** Runs a command in the client that provides it. Resolves with the error text, or undefined on success. */
  async run(commandName: string, args: string): Promise<string | undefined> {
    if (!this.#clients.withCommand(commandName)) {
      throw new TroupeError("usage", `Unknown command: ${commandName}`, { hint: "No client of the session has it." });
    }
    const requestId = crypto.randomUUID();
    const command = args === "" ? `/${commandName}` : `/${commandName} ${args}`;
    void this.#session.record.emit("command.execute", { requestId, commandName, command, args });
    return this.#answerTo(this.#pending, requestId, "It was not answered in time.");
  }

  /** The first response counts. */
  answer(requestId: string, error: string | undefined): void {
    this.#pending.get(requestId)?.resolve(error);
  }

  /** Queues a command to run when the agent is idle. */
  enqueue(command: string): void {
    if (this.#queue.length >= MAX_QUEUED)
      throw new TroupeError("limit", `The queue is full: ${MAX_QUEUED} commands are waiting.`);
    this.#queue.push({ id: crypto.randomUUID(), command });
    void this.#session.record.emit("pending_messages.modified", {});
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Returns false if the command is not queued. */
  withdraw(id: string): boolean {
    const index = this.#queue.findIndex((one) => one.id === id);
    if (index >= 0) this.#queue.splice(index, 1);
    return index >= 0;
  }

  /** Returns false if no request with this id is pending. */
  respond(requestId: string, answer: QueuedAnswer): boolean {
    const offered = this.#offered.get(requestId);
    offered?.resolve(answer);
    return offered !== undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#queue = [];
    for (const end of this.#pending.values()) end.resolve("The session is closed.");
    for (const end of this.#offered.values()) end.resolve({ handled: false });
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#session.queue.whenIdle();
      const next = this.#queue.shift();
      if (!next || this.#isClosed) return;
      await this.#carryOut(next.command).catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        this.#session.record.warn("command", `${next.command}: ${why}`);
      });
    }
  }

  async #carryOut(command: string): Promise<void> {
    const [, name = "", args = ""] = /^\/?(\S+)\s*([\s\S]*)$/.exec(command.trim()) ?? [];
    if (this.#clients.withCommand(name)) {
      const error = await this.run(name, args);
      if (error !== undefined) throw new TroupeError("failed", error);
      return;
    }
    const read = await this.#read(`/${name} ${args}`.trim()).catch((error: unknown) => {
      if (error instanceof TroupeError && this.#isOffered()) return undefined;
      throw error;
    });
    if (!read) await this.#offer(command);
    else if (read.kind === "prompt") await sendOn(this.#session, await sendingOf(this.#session, read));
    else this.showMessage(read.text);
  }

  /** Announces a command's output when no request returns it. */
  showMessage(message: string): void {
    void this.#session.record.emit("session.info", { infoType: "command", message });
  }

  /**
   * Runs a command for a client that sends the prompt itself. The limits, agents and gate of the command apply to the
   * message that begins with this prompt: see `invoked`.
   */
  async invoke(text: string): Promise<Typed> {
    const read = await this.#read(text);
    if (read.kind === "prompt" && read.isLimited) this.#invoked = [read, ...this.#invoked].slice(0, MAX_INVOKED);
    return read;
  }

  /** Returns the invoked command whose prompt a message begins with. A client may append data and may send it twice. */
  invoked(prompt: string): Prompted | undefined {
    return this.#invoked.find((read) => prompt.startsWith(read.prompt));
  }

  async #read(text: string): Promise<Typed> {
    const read = await readTyped(this.#session, text);
    if (!read) throw new TroupeError("usage", `${text.trim().split(/\s/, 1)[0]} is not a command of this session.`);
    return read;
  }

  async #offer(command: string): Promise<void> {
    const requestId = crypto.randomUUID();
    void this.#session.record.emit("command.queued", { requestId, command });
    const { handled, stopProcessingQueue } = await this.#answerTo(this.#offered, requestId, { handled: false });
    if (stopProcessingQueue) this.#queue = [];
    if (!handled && !this.#isClosed) throw new TroupeError("usage", "the command is unknown");
  }

  async #answerTo<T>(waiting: Map<string, Deferred<T>>, requestId: string, late: T): Promise<T> {
    const end = deferred<T>();
    waiting.set(requestId, end);
    const timer = setTimeout(() => end.resolve(late), TIMEOUT_MS);
    try {
      return await end.promise;
    } finally {
      clearTimeout(timer);
      waiting.delete(requestId);
      void this.#session.record.emit("command.completed", { requestId });
    }
  }
}
