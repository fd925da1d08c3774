import { randomUUID } from "node:crypto";
import type { AvailableCommand, SessionConfigOption, SessionModeState, StopReason } from "@agentclientprotocol/sdk";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { defined } from "../lib/defined.ts";
import { isObject } from "../lib/json.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { RpcError } from "../protocol/rpc/errors.ts";
import type { Peer } from "../protocol/rpc/peer.ts";
import type { Client } from "../sdk/client.ts";
import type { McpServer, SessionConfig } from "../sdk/config.ts";
import type { ClientSession, SubmitOptions } from "../sdk/session.ts";
import type { Abilities } from "./abilities.ts";
import { ConfigOptions, modes } from "./config-options.ts";
import { textBlock, textContent } from "./content.ts";
import { editorBuffers } from "./editor-buffers.ts";
import { authRequired, plainMessage } from "./errors.ts";
import { messageOf } from "./message.ts";
import type { NewSessionParams, PromptBlock, ServerEntry } from "./params.ts";
import { Questions } from "./questions.ts";
import { enterKey } from "./sign-in.ts";
import { planOfRows } from "./todo-plan.ts";
import type { Update } from "./update.ts";
import { Updates } from "./updates.ts";

export interface EditorParts {
  readonly client: Client;
  readonly peer: Peer;
  readonly abilities: Abilities;
  /** Called when a provider refuses its key. */
  onRefused(): void;
}

/** Timeout longer than any answer, so that every wait ends. */
const PROMPT_MS = 24 * 60 * 60_000;
const UNDERSTUDY = "understudy";
const LOGIN = /^\/login\s*$/i;
const LOGIN_COMMAND: AvailableCommand = { name: "login", description: "Enter the key of a model provider" };
const MAX_IMAGE_BYTES = 8 * 1024 * 1024;

/** One session of an editor. It accepts prompts, and sends updates and questions. */
export class EditorSession {
  readonly sessionId: string;
  readonly #parts: EditorParts;
  readonly #updates: Updates;
  readonly #questions: Questions;
  /** Events that wait until the editor knows the session. */
  #held: SessionEvent[] | undefined = [];
  readonly #underWay = new Set<Promise<void>>();
  #opened: { readonly session: ClientSession; readonly config: ConfigOptions } | undefined;
  #lastConfig = "";
  /** Prompts that are not answered yet. */
  #prompts = 0;
  #isCancelled = false;
  #limit: "max_turn_requests" | "max_tokens" | undefined;

  #stopLogin: (() => void) | undefined;

  /** The error of the answer, if a provider rejected the key. */
  #refusedKey: string | undefined;

  static async create(parts: EditorParts, params: NewSessionParams): Promise<EditorSession> {
    const session = new EditorSession(parts, params, randomUUID());
    const { sessionId } = session;
    session.#open(await parts.client.createSession({ ...session.#config(params), sessionId }));
    return session;
  }

  /** Opens an existing session. Its history is not shown: see `replay`. */
  static async resume(
    parts: EditorParts,
    params: NewSessionParams & { readonly sessionId: string },
  ): Promise<EditorSession> {
    const session = new EditorSession(parts, params, params.sessionId);
    session.#open(await parts.client.resumeSession(params.sessionId, session.#config(params)));
    return session;
  }

  private constructor(parts: EditorParts, { cwd }: NewSessionParams, sessionId: string) {
    const { peer, abilities } = parts;
    this.#parts = parts;
    this.sessionId = sessionId;
    this.#updates = new Updates({ sessionId, cwd, abilities });
    const tell = (updates: readonly Update[]): void => this.#tell(updates);
    this.#questions = new Questions({ peer, sessionId, cwd, abilities, updates: this.#updates, tell });
  }

  #config(params: NewSessionParams): SessionConfig {
    const { additionalDirectories: folders } = params;
    return {
      workingDirectory: params.cwd,
      ...(folders && folders.length > 0 && { additionalDirectories: folders }),
      streaming: true,
      enableConfigDiscovery: true,
      clientName: "acp",
      memory: { enabled: true },
      mcpServers: Object.fromEntries(params.mcpServers.map((entry) => [entry.name, serverOf(entry)])),
      onEvent: (event) => this.#onEvent(event),
      onPermissionRequest: (request, { agentId }) => this.#questions.permission(request, agentId),
      onUserInputRequest: (request) => this.#questions.userInput(request),
      onExitPlanModeRequest: (request) => this.#questions.plan(request),
      ...(this.#parts.abilities.readsFiles && { textBuffers: editorBuffers(this.sessionId, this.#parts) }),
      ...((this.#parts.abilities.forms || this.#parts.abilities.addresses) && {
        onElicitationRequest: (request) => this.#questions.elicitation(request),
      }),
    };
  }

  #open(session: ClientSession): void {
    this.#opened = { session, config: new ConfigOptions(session) };
  }

  get #session(): ClientSession {
    if (!this.#opened) throw new Error(`Session ${this.sessionId} is not open yet.`);
    return this.#opened.session;
  }

  /** Waits until the session is idle. Errors of the session reject. */
  async prompt(blocks: readonly PromptBlock[]): Promise<StopReason> {
    if (this.#prompts === 0) this.#isCancelled = false;
    this.#limit = undefined;
    this.#refusedKey = undefined;
    this.#prompts++;
    return this.#answer(blocks).finally(() => this.#prompts--);
  }

  async #answer(blocks: readonly PromptBlock[]): Promise<StopReason> {
    const { prompt, command, quotes: data, attachments } = messageOf(blocks);
    if (command !== undefined && LOGIN.test(command)) return this.#login();
    const answered =
      command === undefined
        ? this.#session.sendAndWait({ prompt, ...(attachments.length > 0 && { attachments }) }, PROMPT_MS)
        : this.#run(command, { timeout: PROMPT_MS, data, ...(attachments.length > 0 && { attachments }) });
    await answered.catch((error: unknown) => {
      if (this.#isCancelled) return;
      if (this.#refusedKey === undefined) throw error;
      this.#parts.onRefused();
      throw authRequired(this.#refusedKey);
    });
    await this.#settled();
    return this.#isCancelled ? "cancelled" : (this.#limit ?? "end_turn");
  }

  /** Lets the user enter a key. It never passes the conversation or the editor. */
  async #login(): Promise<StopReason> {
    const stop = new AbortController();
    this.#stopLogin = () => stop.abort();
    const show = (url: string): void => this.#reply(`Open this page to enter the key of a model provider: ${url}\n\n`);
    const scope = { sessionId: this.sessionId };
    try {
      const model = await enterKey(this.#parts, { scope, signal: stop.signal, show });
      await this.useNewKey(model);
      this.#reply(`The key is stored: ${model} answers.`);
    } catch (error) {
      if (!stop.signal.aborted) this.#reply(error instanceof Error ? error.message : String(error));
    } finally {
      this.#stopLogin = undefined;
    }
    await this.#settled();
    return this.#isCancelled ? "cancelled" : "end_turn";
  }

  /** Uses the model of a new key if only the built-in model has answered so far. Other models keep their place. */
  async useNewKey(model: string): Promise<void> {
    const { modelId } = await this.#session.rpc.model.getCurrent();
    if (modelId === UNDERSTUDY) await this.#session.rpc.model.switchTo({ modelId: model });
    await this.modelsChanged();
  }

  /** Lists the models again and shows them to the editor. */
  async modelsChanged(): Promise<void> {
    this.#opened?.config.forgetModels();
    await this.#showConfig();
  }

  /** Runs a command. Its output goes to the conversation, also if it is unknown or cannot run now. */
  async #run(command: string, options: SubmitOptions): Promise<void> {
    try {
      const submitted = await this.#session.submit(command, options);
      if (submitted.kind === "said") this.#reply(submitted.text);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#reply(plainMessage(error));
    }
  }

  /** Stops the answer, or the work of one agent that has a session of its own. */
  cancel(sessionId = this.sessionId): void {
    const agentId = this.#updates.agents.agentOf(sessionId);
    const gone = (): void => undefined; // a session that is gone needs no stopping
    if (agentId !== undefined) {
      this.#session.rpc.tasks.cancel({ id: agentId }).catch(gone);
      return;
    }
    this.#isCancelled = true;
    // Queued prompts would be answered next.
    const cleared = this.#prompts > 1 ? this.#session.rpc.queue.clear().catch(gone) : Promise.resolve();
    cleared.then(() => this.#session.abort()).catch(gone);
    this.#session.rpc.history.abortManualCompaction().catch(gone);
    this.#questions.cancel();
    this.#stopLogin?.();
  }

  /** True for its own id and those of its agents. */
  has(sessionId: string): boolean {
    return sessionId === this.sessionId || this.#updates.agents.agentOf(sessionId) !== undefined;
  }

  /** Stops the current work and disconnects. The session can be opened again. */
  async close(): Promise<void> {
    this.cancel();
    await this.#session.disconnect();
  }

  /** Call when the editor has opened the session again: prompts of this opening end. */
  leave(): void {
    this.#questions.cancel();
    this.#session.end(new Error(`Session ${this.sessionId} was opened again.`));
  }

  /** Shows the session's history. Events that arrive meanwhile are queued. */
  async replay(): Promise<void> {
    const past = await this.#session.getEvents();
    const updates = past.flatMap((event) => this.#updates.of(event, "replay"));
    this.#tell(updates);
    const shown = new Set(past.map(({ id }) => id));
    this.#held = this.#held?.filter(({ id }) => !shown.has(id));
    if (!updates.some(({ update }) => update.sessionUpdate === "plan")) await this.#showRows();
    await this.#settled();
  }

  /** Loads the cost so far of a session whose history is not shown. */
  async recallCost(): Promise<void> {
    const { modelMetrics = {} } = (await this.#session.rpc.usage.getMetrics()) as {
      modelMetrics?: Readonly<Record<string, { readonly requests?: { readonly cost?: number } }>>;
    };
    for (const { requests } of Object.values(modelMetrics)) this.#updates.facts.addCost(requests?.cost ?? 0);
  }

  /** Sends queued events: from here on the editor knows the session. */
  async show(): Promise<void> {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const event of held) this.#onEvent(event);
    await Promise.all([this.#showCommands(), this.#showContext(), this.#showTitle()]);
  }

  async state(): Promise<{ modes: SessionModeState; configOptions: SessionConfigOption[] }> {
    const configOptions = await this.#readConfig();
    const currentModeId = await this.#session.rpc.mode.get();
    return { modes: { currentModeId, availableModes: [...modes] }, configOptions };
  }

  async setMode(mode: string): Promise<void> {
    await this.#opened?.config.setMode(mode);
  }

  async configure(id: string, value: unknown): Promise<SessionConfigOption[]> {
    await this.#opened?.config.set(id, value);
    return this.#readConfig();
  }

  #onEvent(event: SessionEvent): void {
    if (this.#held) {
      this.#held.push(event);
      return;
    }
    this.#tell(this.#updates.of(event, "live"));
    if (event.agentId !== undefined) return;
    this.#limited(event);
    if (this.#opened) this.#after(event);
  }

  /** Records why the answer may end early. A truncated reply counts only if no other reply follows. */
  #limited({ type, data }: SessionEvent): void {
    if (type === "troupe.limit_reached") this.#limit = "max_turn_requests";
    else if (type === "session.warning" && data.warningType === "output_limit") this.#limit = "max_tokens";
    else if (type === "session.error" && data.errorType === "authentication") this.#refusedKey = data.message;
    else if (type === "assistant.turn_start" && this.#limit === "max_tokens") this.#limit = undefined;
  }

  /** Loads the data that an event only announces. */
  #after(event: SessionEvent): void {
    switch (event.type) {
      case "session.todos_changed":
        this.#later(this.#showRows());
        break;
      case "session.model_change":
        this.#later(this.#showConfig());
        break;
      case "session.mode_changed":
        // The session changes its mode only after this event.
        this.#later(this.#showConfig(event.data.newMode));
        break;
      case "session.skills_loaded":
      case "commands.changed":
      case "mcp.prompts.list_changed":
      case "session.mcp_server_status_changed":
        this.#later(this.#showCommands());
        break;
    }
  }

  /** Shows the context usage of a resumed session before its next model call. */
  async #showContext(): Promise<void> {
    const { contextAttribution: context } = await this.#session.rpc.metadata.getContextAttribution();
    if (!context) return;
    for (const update of this.#updates.facts.context(context.totalTokens, context.limit)) this.#show(update);
  }

  async #showTitle(): Promise<void> {
    const { name } = await this.#session.rpc.name.get();
    if (name) for (const update of this.#updates.facts.named(name)) this.#show(update);
  }

  async #showRows(): Promise<void> {
    const { rows } = await this.#session.rpc.plan.readSqlTodos();
    if (rows.length > 0) this.#show({ sessionUpdate: "plan", entries: planOfRows(rows) });
  }

  async #showConfig(mode?: string): Promise<void> {
    const before = this.#lastConfig;
    const configOptions = await this.#readConfig(mode);
    if (this.#lastConfig !== before) this.#show({ sessionUpdate: "config_option_update", configOptions });
  }

  async #readConfig(mode?: string): Promise<SessionConfigOption[]> {
    const options = (await this.#opened?.config.read(mode)) ?? [];
    this.#lastConfig = JSON.stringify(options);
    return options;
  }

  async #showCommands(): Promise<void> {
    const { commands } = await this.#session.rpc.commands.list();
    const byName = new Map<string, AvailableCommand>();
    for (const { name, description, input } of commands) {
      // Skill names may contain spaces, but are typed without.
      const typed = name.toLowerCase().replace(/\s+/g, "-");
      if (!byName.has(typed)) byName.set(typed, { name: typed, description, ...defined({ input }) });
    }
    byName.set(LOGIN_COMMAND.name, LOGIN_COMMAND);
    this.#show({ sessionUpdate: "available_commands_update", availableCommands: [...byName.values()] });
  }

  #reply(text: string): void {
    if (text === "") return;
    this.#show({ sessionUpdate: "agent_message_chunk", content: textBlock(text), messageId: randomUUID() });
  }

  #show(update: SessionUpdate): void {
    this.#tell([{ sessionId: this.sessionId, update }]);
  }

  #tell(updates: readonly Update[]): void {
    for (const { sessionId, update, images } of updates) {
      this.#parts.peer.notify("session/update", { sessionId, update });
      if (update.sessionUpdate !== "tool_call_update") continue;
      if (update.status === "completed" || update.status === "failed") this.#questions.ended(update.toolCallId);
      if (images) this.#later(this.#showImages(sessionId, update, images));
    }
  }

  async #showImages(
    sessionId: string,
    { toolCallId, content }: Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>,
    images: NonNullable<Update["images"]>,
  ): Promise<void> {
    const shown = await Promise.all(
      images.map(async ({ assetId, mimeType, byteLength }) => {
        if (byteLength > MAX_IMAGE_BYTES)
          return textContent(`An image of ${byteLength} bytes is not shown: too large.`);
        const { data } = await this.#session.rpc.assets.read({ assetId });
        return { type: "content" as const, content: { type: "image" as const, data, mimeType } };
      }),
    );
    const update = { sessionUpdate: "tool_call_update" as const, toolCallId, content: [...(content ?? []), ...shown] };
    this.#tell([{ sessionId, update }]);
  }

  /** Adds work that must finish before the answer ends. Failures are ignored: the session may be gone. */
  #later(work: Promise<void>): void {
    const done = work.catch(() => undefined).finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  async #settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
}

/** An error that the user can fix: the command does not exist, or cannot run now. */
const isRefusal = (error: unknown): error is RpcError =>
  error instanceof RpcError && isObject(error.data) && (error.data.kind === "usage" || error.data.kind === "failed");

function serverOf(entry: ServerEntry): McpServer {
  const pairs = (list: readonly { name: string; value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  if ("url" in entry) return { type: entry.type, url: entry.url, headers: pairs(entry.headers), tools: ["*"] };
  return { type: "stdio", command: entry.command, args: entry.args, env: pairs(entry.env), tools: ["*"] };
}
