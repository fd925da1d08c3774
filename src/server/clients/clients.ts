/**
 * The clients of one session, and what each provides: tools, commands, hooks, answers to requests. It exists before the
 * session and outlives every client. When a client leaves, what it provided is removed; pending requests stay.
 */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { HookListener, SessionProgram } from "../../runtime/session-request.ts";
import { canvasTools } from "../../session/requests/canvas-tools.ts";
import { type ExternalToolDefinition, ExternalTools } from "../../session/requests/external-tools.ts";
import type { Session } from "../../session/session.ts";
import { clientBuffers } from "../client-buffers.ts";
import type { ClientConnection } from "../connection.ts";
import { extensionsWord } from "../extensions/extension-rights.ts";
import { type CanvasDeclaration, Canvases, type CanvasProvider, type OpenCanvas } from "./canvases.ts";
import { answerersOf } from "./client-answerers.ts";
import { ClientFactories } from "./client-factories.ts";

/** The declarations of a client when it opens a session. Omitted fields stay unchanged. */
export interface ClientProfile {
  readonly tools?: readonly ExternalToolDefinition[] | undefined;
  readonly commands?: readonly ClientCommand[] | undefined;
  readonly hooks: boolean;
  readonly requestUserInput: boolean;
  readonly requestElicitation: boolean;
  readonly requestExitPlanMode: boolean;
  readonly requestAutoModeSwitch: boolean;
  /** Whether it holds editor texts that may not be saved. */
  readonly holdsTexts: boolean;
  /** Whether it receives the message deltas of subagents. */
  readonly subAgentDeltas: boolean;
  /** Whether it is asked for tokens of its providers before each request to them. */
  readonly givesTokens: boolean;
  /** Whether it receives telemetry of this session. */
  readonly wantsTelemetry: boolean;
  /** Whether it rewrites sections of the system prompt. */
  readonly transforms: boolean;
  readonly canvases?: readonly CanvasDeclaration[] | undefined;
  /** The lasting name under which it provides canvases. */
  readonly canvasProvider?: CanvasProvider | undefined;
  /** Whether it shows canvases to a user, so that the agent may open them. */
  readonly rendersCanvases: boolean;
  /** The canvases that it reports as open when it last saw the session. */
  readonly openCanvases?: readonly OpenCanvas[] | undefined;
}

export interface ClientCommand {
  readonly name: string;
  readonly description?: string | undefined;
}

interface Client {
  profile: ClientProfile;
  listener: HookListener;
  /** Callbacks that detach its request handlers. */
  detach: (() => void)[];
}

export class Clients {
  readonly sessionId: string;
  readonly canvases: Canvases;
  readonly factories: ClientFactories;
  readonly #tools = new ExternalTools();
  readonly #clients = new Map<ClientConnection, Client>();
  #session: Session | undefined;
  /** Resolves, in bounded time, when clients that are about to join have joined. */
  ready: (signal: AbortSignal) => Promise<void> = async () => undefined;
  #told: AnnouncedState = { commands: "[]", elicitation: false, canvases: false };

  constructor(sessionId: string) {
    this.sessionId = sessionId;
    this.factories = new ClientFactories(sessionId);
    this.canvases = new Canvases({ sessionId, isRendered: () => this.rendersCanvases });
  }

  /** The client-provided parts that the session is created with. */
  get program(): SessionProgram {
    return {
      tools: this.#tools,
      hooks: () => this.#all.filter(({ profile }) => profile.hooks).map(({ listener }) => listener),
      transform: (sections) => this.#transform(sections),
      ready: (signal) => this.ready(signal),
      factories: this.factories,
      buffers: clientBuffers(this.sessionId, () => this.#textHolder),
    };
  }

  get connections(): readonly ClientConnection[] {
    return [...this.#clients.keys()];
  }

  /** Connections that are not extensions. A session does not stay open for its own extensions. */
  get attached(): readonly ClientConnection[] {
    return this.connections.filter(({ extension }) => !extension);
  }

  /** Returns the clients that receive an event. `isAgentDelta` marks message deltas of subagents. */
  listeners(isAgentDelta: boolean): readonly ClientConnection[] {
    const entries = [...this.#clients];
    const meant = isAgentDelta ? entries.filter(([, { profile }]) => profile.subAgentDeltas) : entries;
    return meant.map(([connection]) => connection);
  }

  wantsTelemetry(connection: ClientConnection): boolean {
    return this.#clients.get(connection)?.profile.wantsTelemetry ?? false;
  }

  get commands(): readonly ClientCommand[] {
    const byName = new Map(this.#all.flatMap(({ profile }) => (profile.commands ?? []).map((one) => [one.name, one])));
    return [...byName.values()];
  }

  /** Returns the client that provides this command; the latest one wins. */
  withCommand(name: string): ClientConnection | undefined {
    const entries = [...this.#clients].reverse();
    return entries.find(([, { profile }]) => profile.commands?.some((command) => command.name === name))?.[0];
  }

  get canElicit(): boolean {
    return this.#all.some(({ profile }) => profile.requestElicitation);
  }

  /** The latest client that holds editor texts. Extensions are excluded: they could forge file contents. */
  get #textHolder(): ClientConnection | undefined {
    return [...this.#clients].findLast(([{ extension }, { profile }]) => profile.holdsTexts && !extension)?.[0];
  }

  get rendersCanvases(): boolean {
    return this.#all.some(({ profile }) => profile.rendersCanvases);
  }

  /** Connects the session to its clients. Requests that need an answer may wait from now on. */
  serve(session: Session): void {
    this.#session = session;
    session.requests.attach({ kinds: ["permission", "external_tool"] });
    for (const [connection, client] of this.#clients) client.detach = this.#answerFor(connection, client.profile);
    this.canvases.serve(session);
    this.#told = this.#state();
  }

  /** Throws, and changes nothing, if another client has a tool of this name. */
  join(connection: ClientConnection, profile: ClientProfile): void {
    const known = this.#clients.get(connection);
    const { extension } = connection;
    if (profile.tools) this.#tools.offer(connection.id, profile.tools, extension && { extension: extension.name });
    // Pending calls of these tools went to an earlier process of the extension, which will not answer.
    if (extension && !known) this.#giveUp((profile.tools ?? []).map(({ name }) => name));
    for (const detach of known?.detach ?? []) detach();
    const { commands = known?.profile.commands, canvases, canvasProvider, openCanvases = [] } = profile;
    const merged = { ...profile, commands };
    const listener = known?.listener ?? this.#listener(connection);
    this.#clients.set(connection, { profile: merged, listener, detach: this.#answerFor(connection, merged) });
    if (canvases) this.canvases.declare(connection, canvases, canvasProvider);
    this.canvases.remember(openCanvases);
    this.#tellChanges();
  }

  /**
   * Replaces the tools of one client. Throws, and changes nothing, if another client has a tool of this name. The agent
   * is notified of removed tools.
   */
  setTools(connection: ClientConnection, tools: readonly ExternalToolDefinition[]): void {
    const { extension } = connection;
    const before = this.#tools.namesOf(connection.id);
    this.#tools.offer(connection.id, tools, extension && { extension: extension.name });
    this.#tellGone(before.filter((name) => !this.#tools.has(name)));
  }

  /** Returns false if the client had not joined. The agent is notified of removed tools. */
  leave(connection: ClientConnection): boolean {
    const client = this.#clients.get(connection);
    if (!client) return false;
    this.#clients.delete(connection);
    for (const detach of client.detach) detach();
    this.canvases.withdraw(connection);
    this.factories.withdraw(connection);
    const gone = this.#tools.withdraw(connection.id);
    // A client may return and answer. An extension returns as a new process, which cannot.
    if (connection.extension) this.#giveUp(gone);
    this.#tellGone(gone);
    this.#tellChanges();
    return true;
  }

  /** Skips tools that were provided again before the agent reads the notice. */
  #tellGone(names: readonly string[]): void {
    for (const name of names) {
      this.#session?.queue.notify(goneNotice(name), { wakes: false, take: () => !this.#tools.has(name) });
    }
  }

  /** Whether this pending request is a call of one of the client's tools. */
  isAskedFor(connection: ClientConnection, requestId: string): boolean {
    const request = this.#session?.requests.pending("external_tool").find((one) => one.requestId === requestId);
    return request?.kind === "external_tool" && this.#tools.isOf(connection.id, request.toolName);
  }

  /** Ends pending calls of these tools. */
  #giveUp(tools: readonly string[]): void {
    const { requests } = this.#session ?? {};
    for (const request of requests?.pending("external_tool") ?? []) {
      if (request.kind !== "external_tool" || !tools.includes(request.toolName)) continue;
      requests?.answer("external_tool", request.requestId, { error: "the program that runs this tool has ended" });
    }
  }

  /** Gets a token for one request to a provider of a client. The token is not stored. */
  async token(providerName: string): Promise<string> {
    const [connection] = [...this.#clients].reverse().find(([, { profile }]) => profile.givesTokens) ?? [];
    if (!connection)
      throw new TroupeError("provider", `The client with the token of ${providerName} has disconnected.`);
    const params = { sessionId: this.sessionId, providerName };
    const answer = await connection.ask("providerToken.getToken", params, { timeoutMs: TOKEN_MS });
    return z.object({ token: z.string().min(1) }).parse(answer).token;
  }

  get #all(): readonly Client[] {
    return [...this.#clients.values()];
  }

  #listener(connection: ClientConnection): HookListener {
    const { sessionId } = this;
    const { extension } = connection;
    return {
      name: extension ? `extension ${extension.name}` : `client ${connection.id}`,
      ...defined({ owner: extension?.scope }),
      async invoke(hookType, input, signal) {
        const answer = await connection.ask("hooks.invoke", { sessionId, hookType, input }, { signal });
        const said = HookAnswer.parse(answer)?.output;
        return extension ? extensionsWord(said, { hookType, input }) : said;
      },
    };
  }

  #answerFor(connection: ClientConnection, profile: ClientProfile): (() => void)[] {
    const session = this.#session;
    if (!session) return [];
    const answerers = answerersOf(connection, this.sessionId, profile);
    return answerers.map((answerer) => session.requests.attach(answerer));
  }

  /**
   * Lets a client rewrite the system prompt. If it fails or its answer is invalid, the sections stay unchanged and a
   * warning is issued.
   */
  async #transform(sections: Record<string, string>): Promise<Record<string, string>> {
    const [connection] = [...this.#clients].reverse().find(([, { profile }]) => profile.transforms) ?? [];
    if (!connection) return {};
    const wrapped = Object.fromEntries(Object.entries(sections).map(([id, content]) => [id, { content }]));
    try {
      const params = { sessionId: this.sessionId, sections: wrapped };
      const answer = Sections.parse(
        await connection.ask("systemMessage.transform", params, { timeoutMs: TRANSFORM_MS }),
      );
      return Object.fromEntries(Object.entries(answer.sections).map(([id, { content }]) => [id, content]));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#session?.record.warn("system_message", `Sections of the system prompt were not transformed: ${why}`);
      return {};
    }
  }

  #state(): AnnouncedState {
    const { commands, canElicit: elicitation, rendersCanvases: canvases } = this;
    return { commands: JSON.stringify(commands), elicitation, canvases };
  }

  /** Returns the agent's canvas tools while one client has canvases and one shows them. */
  #canvasTools(): ReturnType<typeof canvasTools> {
    const { canvases } = this;
    if (!this.rendersCanvases || canvases.declared.length === 0) return [];
    return canvasTools({
      list: () => ({ canvases: canvases.declared, open: canvases.open }),
      open: (request, signal) => canvases.show(request, signal),
      act: (request, signal) => canvases.act(request, signal),
      extensionOf: (instanceId) => canvases.extensionOf(instanceId),
    });
  }

  #tellChanges(): void {
    this.#tools.stand(this.#canvasTools());
    if (!this.#session) return;
    const [before, now] = [this.#told, this.#state()];
    this.#told = now;
    if (now.commands !== before.commands) {
      const commands = this.commands.map(({ name, description }) => ({
        name,
        ...defined({ description }),
      }));
      void this.#session.record.emit("commands.changed", { commands });
    }
    if (now.elicitation !== before.elicitation || now.canvases !== before.canvases) {
      const { elicitation, canvases } = now;
      void this.#session.record.emit("capabilities.changed", { ui: { elicitation, ...(canvases && { canvases }) } });
    }
  }
}

/** The state last announced to clients. */
interface AnnouncedState {
  readonly commands: string;
  readonly elicitation: boolean;
  readonly canvases: boolean;
}

const TRANSFORM_MS = 60_000;
const TOKEN_MS = 60_000;
const HookAnswer = z.object({ output: z.unknown().optional() }).nullish();
const Sections = z.object({ sections: z.record(z.string(), z.object({ content: z.string() })) });

function goneNotice(name: string): Parameters<Session["queue"]["notify"]>[0] {
  const content = wrapInTag(
    "tools_changed_notice",
    {},
    `Tools no longer available: ${quoted(name)}\n\nThe program that ran it has disconnected. Continue without it.`,
  );
  return { content, kind: { type: "unclassified" } };
}
