/**
 * One open session as the terminal sees it: the view folded from its events, and everything that can be asked of it
 * through the contract. The same code serves a session of this process and one that another process has open.
 */
import { defined } from "../lib/defined.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { answeredById } from "../sdk/answers.ts";
import type { Client } from "../sdk/client.ts";
import type { SessionConfig } from "../sdk/config.ts";
import type { ClientSession, EventReading } from "../sdk/session.ts";
import type { Block } from "../view/blocks.ts";
import { SessionView, type TodoRow } from "../view/session-view.ts";
import type { AttentionItem, SessionMode, View } from "../view/view.ts";
import type { CommandEntry } from "./input/completion.ts";

export interface TerminalSessionOptions {
  readonly client: Client;
  /** Undefined for a session that is open elsewhere: it stays in its folder. */
  readonly cwd: string | undefined;
  /** Undefined for a new session. */
  readonly resumeId: string | undefined;
  /** The id of a new session; a random one unless given. */
  readonly newId?: string;
  /** The model of a new session; the usual one unless given. */
  readonly model?: string;
  onChange(session: TerminalSession): void;
}

export class TerminalSession {
  readonly #client: Client;
  readonly #onChange: (session: TerminalSession) => void;
  #session: ClientSession | undefined;
  #fold = new SessionView();
  /** Live events that came while the past was read. */
  #early: SessionEvent[] | undefined = [];
  #commands: readonly CommandEntry[] = [];
  #isReadingTodos = false;
  #formerFolder: string | undefined;
  /** It was made by this terminal. */
  isNew = false;

  private constructor(options: TerminalSessionOptions) {
    this.#client = options.client;
    this.#onChange = options.onChange;
  }

  /** Opens the session and folds its past, so that nothing that happens meanwhile is missed or folded twice. */
  static async open(options: TerminalSessionOptions): Promise<TerminalSession> {
    const opened = new TerminalSession(options);
    const config: SessionConfig = {
      ...defined({ workingDirectory: options.cwd }),
      streaming: true,
      enableConfigDiscovery: true,
      clientName: "terminal",
      memory: { enabled: true },
      onEvent: (event) => opened.#receive(event),
      onPermissionRequest: () => ({ kind: "no-result" }),
      onUserInputRequest: answeredById,
      onElicitationRequest: answeredById,
      onExitPlanModeRequest: answeredById,
    };
    const { resumeId } = options;
    opened.isNew = resumeId === undefined;
    opened.#session =
      resumeId === undefined
        ? await options.client.createSession({
            ...config,
            ...defined({ sessionId: options.newId, model: options.model }),
          })
        : await options.client.resumeSession(resumeId, { ...config, continuePendingWork: true });
    // Reading files of the workspace is not asked about; the rules of the user still hold.
    await opened.request("session.permissions.configure", { approveAllReadPermissionRequests: true });
    await opened.#foldPast();
    opened.#onChange(opened);
    return opened;
  }

  get id(): string {
    return this.#session?.sessionId ?? "";
  }

  /** The session's folder, if the server has one. */
  get folder(): string | undefined {
    return this.#session?.workspacePath;
  }

  /** The working folder before the session was resumed, if it was another one. */
  get formerFolder(): string | undefined {
    return this.#formerFolder === this.view.session.cwd ? undefined : this.#formerFolder;
  }

  get view(): View {
    return this.#fold.view;
  }

  get commands(): readonly CommandEntry[] {
    return this.#commands;
  }

  /** Finished blocks of an agent that were not taken yet. */
  drain(): readonly Block[] {
    return this.#fold.drain();
  }

  request(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    if (!this.#session) return Promise.reject(new Error("The session is not open yet."));
    return this.#session.request(method, params);
  }

  /** The stored events, for overlays that show whole texts. `onPage` gets those so far, and ends the reading if it throws. */
  events(onPage?: EventReading["onPage"]): Promise<SessionEvent[]> {
    return this.#session?.getEvents(onPage && { onPage }) ?? Promise.resolve([]);
  }

  /** Calls the listener with every event from now on. Returns a function that ends this. */
  follow(listener: (event: SessionEvent) => void): () => void {
    return this.#session?.on(listener) ?? (() => undefined);
  }

  async readCommands(): Promise<void> {
    const { commands } = (await this.request("session.commands.list")) as {
      commands: readonly { name: string; description: string; input?: { hint: string } }[];
    };
    this.#commands = commands.map(({ name, description, input }) => ({
      name,
      description,
      ...defined({ hint: input?.hint }),
    }));
  }

  /**
   * Sends a prompt: `steer` reaches the agent before its next model call, `queue` after its present work. The model
   * reads the texts in `before` first; they are not shown.
   */
  async send(
    text: string,
    how: "steer" | "queue",
    { attachments = [], before = [] }: { attachments?: readonly object[]; before?: readonly string[] } = {},
  ): Promise<void> {
    const mode = how === "steer" ? "immediate" : "enqueue";
    const prompt = [...before, text].join("\n\n");
    const more = { ...(before.length > 0 && { displayPrompt: text }), ...(attachments.length > 0 && { attachments }) };
    await this.request("session.send", { prompt, mode, ...more });
  }

  /** Runs a slash command or a skill. Returns the text of a command that answers by itself. */
  async submit(text: string): Promise<string | undefined> {
    const result = (await this.request("session.commands.submit", { text })) as { kind: string; text?: string };
    return result.kind === "sent" ? undefined : (result.text ?? "");
  }

  /** Stops the main agent's answer. Agents in the background and the queue stay. */
  async interrupt(): Promise<void> {
    await this.request("session.interruptMainTurn", { flushQueued: true });
  }

  async setMode(mode: SessionMode): Promise<void> {
    await this.request("session.mode.set", { mode });
  }

  /** Answers a permission request; false when it was answered elsewhere. */
  async decide({ id }: AttentionItem, result: Readonly<Record<string, unknown>>): Promise<boolean> {
    return this.#answer("session.permissions.handlePendingPermissionRequest", { requestId: id, result });
  }

  async answerQuestion({ id }: AttentionItem, answer: string, wasFreeform: boolean): Promise<boolean> {
    return this.#answer("session.ui.handlePendingUserInput", { requestId: id, response: { answer, wasFreeform } });
  }

  async answerPlan({ id }: AttentionItem, response: Readonly<Record<string, unknown>>): Promise<boolean> {
    return this.#answer("session.ui.handlePendingExitPlanMode", { requestId: id, response });
  }

  async answerForm({ id }: AttentionItem, result: Readonly<Record<string, unknown>>): Promise<boolean> {
    return this.#answer("session.ui.handlePendingElicitation", { requestId: id, result });
  }

  async answerLimit({ id }: AttentionItem, action: string): Promise<boolean> {
    return this.#answer("session.ui.handlePendingSessionLimitsExhausted", { requestId: id, response: { action } });
  }

  async #answer(method: string, params: Readonly<Record<string, unknown>>): Promise<boolean> {
    const { success } = (await this.request(method, params)) as { success: boolean };
    return success;
  }

  /** Lets go of the session. It ends when nobody else holds it. */
  async close(): Promise<void> {
    await this.#session?.disconnect();
  }

  get client(): Client {
    return this.#client;
  }

  #receive(event: SessionEvent): void {
    if (this.#early) this.#early.push(event);
    else this.#apply(event);
  }

  #apply(event: SessionEvent): void {
    this.#fold.apply(event);
    if (event.type === "session.todos_changed") void this.#readTodos();
    // A connected MCP server may have prompts, which are commands.
    if (event.type === "session.mcp_server_status_changed" || event.type === "mcp.prompts.list_changed")
      void this.readCommands().catch(() => undefined);
    if (this.#fold.view.needsReload) void this.#reload();
    this.#onChange(this);
  }

  async #foldPast(): Promise<void> {
    const past = (await this.#session?.getEvents()) ?? [];
    const known = new Set(past.map(({ id }) => id));
    for (const event of past) {
      if (event.type === "session.resume") this.#formerFolder = this.#fold.view.session.cwd;
      this.#fold.apply(event);
    }
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const event of early) if (event.ephemeral || !known.has(event.id)) this.#fold.apply(event);
    await this.#foldOpenRequests();
    if (past.some(({ type, data }) => type === "tool.execution_start" && data.toolName === "sql"))
      await this.#readTodos();
  }

  /** The todos of a fleet are rows of a table, which no event contains. Changes while it is read are read once more. */
  async #readTodos(): Promise<void> {
    const fold = this.#fold;
    const { tableChanges } = fold.view.plan;
    if (this.#isReadingTodos) return;
    this.#isReadingTodos = true;
    const answer = await this.request("session.plan.readSqlTodos").catch(() => ({ rows: [] }));
    this.#isReadingTodos = false;
    const { rows } = answer as { rows: readonly TodoRow[] };
    fold.setTodos(rows);
    this.#onChange(this);
    if (fold.view.plan.tableChanges !== tableChanges) await this.#readTodos();
  }

  /** Questions, forms and plans are announced by events that are not stored. */
  async #foldOpenRequests(): Promise<void> {
    const { events } = (await this.request("session.ui.pendingRequests")) as { events?: readonly SessionEvent[] };
    for (const event of events ?? []) {
      const { requestId } = event.data as { readonly requestId?: string };
      if (!this.#fold.view.attention.has(requestId ?? "")) this.#fold.apply(event);
    }
  }

  /** After a rewind the view is folded again; what was committed to the screen stays there. */
  async #reload(): Promise<void> {
    if (this.#early) return;
    this.#early = [];
    this.#fold = new SessionView();
    await this.#foldPast();
    this.#fold.drain();
    this.#onChange(this);
  }
}
