/**
 * The canvases of a session: panels that its clients can show beside the conversation, and the open ones. Each canvas
 * belongs to the client that declared it, and requests about it go to that client. When a client leaves, its canvases
 * close. Canvases of a client with a lasting name reopen when it returns, also in a resumed session.
 */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { EventData } from "../../protocol/event.ts";
import { RpcError, rpcCodes } from "../../protocol/rpc/errors.ts";
import type { Session } from "../../session/session.ts";
import type { ClientConnection } from "../connection.ts";

export interface CanvasDeclaration {
  readonly id: string;
  readonly displayName: string;
  readonly description: string;
  readonly icon?: string;
  readonly inputSchema?: Json;
  readonly actions?: NonNullable<DeclaredCanvas["actions"]>;
}

export type DeclaredCanvas = EventData<"session.canvas.registry_changed">["canvases"][number];
export type OpenCanvas = EventData<"session.canvas.opened">;

/** The provider of canvases. A client without a lasting name is identified by its connection. */
export interface CanvasProvider {
  readonly id: string;
  readonly name?: string | undefined;
}

export interface OpenCanvasRequest {
  readonly canvasId: string;
  /** Selects the client when several have a canvas of this name. */
  readonly extensionId?: string | undefined;
  readonly instanceId: string;
  readonly input?: Json | undefined;
}

export interface CanvasActionRequest {
  readonly instanceId: string;
  readonly actionName: string;
  readonly input?: Json | undefined;
}

interface Brought {
  readonly connection: ClientConnection;
  readonly canvas: DeclaredCanvas;
}

/** Prefix that a client cannot give itself. Such ids last as long as a connection. */
const OF_CONNECTION = "connection:";
const OPEN_MS = 60_000;
const ACTION_MS = 10 * 60_000;
const CLOSE_MS = 10_000;
const MAX_OPEN = 100;

export class Canvases {
  readonly #options: { readonly sessionId: string; isRendered(): boolean };
  readonly #brought = new Map<string, Brought>();
  readonly #open = new Map<string, OpenCanvas>();
  /** Canvases that were open and whose client is not connected. */
  readonly #away = new Map<string, EventData<"session.canvas.recorded">>();
  readonly #reopening = new Set<string>();
  #session: Session | undefined;

  constructor(options: { readonly sessionId: string; isRendered(): boolean }) {
    this.#options = options;
  }

  get declared(): readonly DeclaredCanvas[] {
    return [...this.#brought.values()].map(({ canvas }) => canvas);
  }

  get open(): readonly OpenCanvas[] {
    return [...this.#open.values()];
  }

  /**
   * Returns the name of the extension that shows the canvas, or undefined if a client that is not an extension shows it.
   */
  extensionOf(instanceId: string): string | undefined {
    const open = this.#open.get(instanceId);
    return open && this.#brought.get(keyOf(open))?.connection.extension?.name;
  }

  /** Binds the session. The first call loads the canvases that were open when the session was closed. */
  serve(session: Session): void {
    const isFirst = this.#session === undefined;
    this.#session = session;
    if (!isFirst) return;
    for (const event of session.events) {
      if (event.type === "session.canvas.removed") this.#away.delete(event.data.instanceId);
      else if (event.type === "session.canvas.recorded" && isLasting(event.data.extensionId)) {
        this.#away.set(event.data.instanceId, event.data);
      }
    }
    void this.#openAgain();
  }

  /** Replaces all canvases of this client. */
  declare(
    connection: ClientConnection,
    canvases: readonly CanvasDeclaration[],
    named: CanvasProvider | undefined,
  ): void {
    const before = JSON.stringify(this.declared);
    const { id: extensionId, name } = named && isLasting(named.id) ? named : { id: `${OF_CONNECTION}${connection.id}` };
    const own = canvases.map(({ id, ...rest }) => ({
      extensionId,
      canvasId: id,
      ...rest,
      ...defined({ extensionName: name }),
    }));
    const keys = new Set(own.map(keyOf));
    this.#forget((brought) => brought.connection === connection && !keys.has(keyOf(brought.canvas)));
    for (const canvas of own) this.#brought.set(keyOf(canvas), { connection, canvas });
    this.#tell(before);
    void this.#openAgain();
  }

  withdraw(connection: ClientConnection): void {
    const before = JSON.stringify(this.declared);
    this.#forget((brought) => brought.connection === connection);
    this.#tell(before);
  }

  /** Adds canvases that a client reports as open when it last saw the session. */
  remember(open: readonly OpenCanvas[]): void {
    for (const { instanceId, extensionId, canvasId, title, input } of open) {
      if (this.#open.has(instanceId) || this.#away.has(instanceId) || !isLasting(extensionId)) continue;
      const kept = defined({ title, input });
      this.#away.set(instanceId, { instanceId, extensionId, canvasId, ...kept });
    }
    void this.#openAgain();
  }

  /** Opens a canvas. If it is open already, its client is asked again, which brings it to the front. */
  async show(request: OpenCanvasRequest, signal: AbortSignal): Promise<OpenCanvas> {
    const { instanceId, input } = request;
    const { connection, canvas } = this.#find(request);
    const known = this.#open.get(instanceId);
    if (known && keyOf(known) !== keyOf(canvas)) {
      throw new TroupeError("usage", `"${instanceId}" is already open, as the canvas ${known.canvasId}.`);
    }
    if (!known && this.#open.size >= MAX_OPEN) {
      throw new TroupeError("usage", `${MAX_OPEN} canvases are open; close one first.`);
    }
    const { extensionId, canvasId, extensionName, icon } = canvas;
    const whose = { instanceId, extensionId, canvasId };
    const given = input === undefined ? {} : { input };
    const answer = await this.#ask(connection, "canvas.open", { ...whose, ...given }, { signal, timeoutMs: OPEN_MS });
    const shown = Shown.safeParse(answer);
    if (!shown.success) throw new TroupeError("failed", `The client of the canvas ${canvasId} gave no valid answer.`);
    const { title } = shown.data;
    const named = defined({ extensionName, icon });
    const open = { ...whose, ...named, ...shown.data, ...given };
    await this.#session?.record.emit("session.canvas.recorded", {
      ...whose,
      ...defined({ title }),
      ...given,
    });
    this.#away.delete(instanceId);
    this.#open.set(instanceId, open);
    await this.#session?.record.emit("session.canvas.opened", open);
    // The client may have disconnected during the write.
    if (connection.isClosed) this.withdraw(connection);
    return open;
  }

  async act({ instanceId, actionName, input }: CanvasActionRequest, signal: AbortSignal): Promise<Json> {
    const open = this.#requireOpen(instanceId);
    const { connection, canvas } = this.#find(open);
    if (!canvas.actions?.some(({ name }) => name === actionName)) {
      const names = canvas.actions?.map(({ name }) => name) ?? [];
      const hint = names.length === 0 ? "It has no actions." : `It has: ${names.join(", ")}.`;
      throw new TroupeError("usage", `The canvas ${canvas.canvasId} has no action "${actionName}".`, { hint });
    }
    const { extensionId, canvasId } = canvas;
    const params = { instanceId, extensionId, canvasId, actionName, ...defined({ input }) };
    const answer = await this.#ask(connection, "canvas.action.invoke", params, { signal, timeoutMs: ACTION_MS });
    return z.json().parse(answer ?? null);
  }

  /** Closes the canvas, also if its client fails to answer. */
  async close(instanceId: string, signal: AbortSignal): Promise<void> {
    const { extensionId, canvasId } = this.#open.get(instanceId) ?? this.#requireKnown(instanceId);
    const whose = { instanceId, extensionId, canvasId };
    const brought = this.#brought.get(keyOf(whose));
    const asked = brought && this.#ask(brought.connection, "canvas.close", whose, { signal, timeoutMs: CLOSE_MS });
    await asked?.catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      this.#session?.record.warn("canvas", `The client of the canvas ${canvasId} could not close it: ${why}`);
    });
    this.#open.delete(instanceId);
    this.#away.delete(instanceId);
    await this.#session?.record.emit("session.canvas.removed", whose);
    await this.#session?.record.emit("session.canvas.closed", whose);
  }

  #find({ canvasId, extensionId }: { canvasId: string; extensionId?: string | undefined }): Brought {
    const meant = [...this.#brought.values()].filter(
      ({ canvas }) => canvas.canvasId === canvasId && (extensionId ?? canvas.extensionId) === canvas.extensionId,
    );
    const [first, second] = meant;
    if (!first) {
      const names = this.declared.map((canvas) => canvas.canvasId);
      const hint = names.length === 0 ? "No client has any." : `There are: ${[...new Set(names)].join(", ")}.`;
      throw new TroupeError("usage", `There is no canvas "${canvasId}".`, { hint });
    }
    if (!second) return first;
    const owners = meant.map(({ canvas }) => canvas.extensionId).join(", ");
    throw new TroupeError(
      "usage",
      `Several clients have a canvas "${canvasId}". Set extensionId to one of: ${owners}.`,
    );
  }

  #requireOpen(instanceId: string): OpenCanvas {
    const open = this.#open.get(instanceId);
    if (open) return open;
    const isAway = this.#away.has(instanceId);
    throw new TroupeError(
      "usage",
      isAway ? `The client of the canvas "${instanceId}" is not connected.` : `No canvas "${instanceId}" is open.`,
    );
  }

  #requireKnown(instanceId: string): EventData<"session.canvas.closed"> {
    return this.#away.get(instanceId) ?? this.#requireOpen(instanceId);
  }

  #forget(isGone: (brought: Brought) => boolean): void {
    for (const [key, brought] of this.#brought) if (isGone(brought)) this.#brought.delete(key);
    for (const open of [...this.#open.values()]) {
      if (this.#brought.has(keyOf(open))) continue;
      const { instanceId, extensionId, canvasId, title, input } = open;
      const whose = { instanceId, extensionId, canvasId };
      this.#open.delete(instanceId);
      // Canvases that last as long as their connection are not restored from the log, so their end is not logged.
      if (!isLasting(extensionId)) void this.#session?.record.emit("session.canvas.closed", whose);
      else {
        const kept = defined({ title, input });
        this.#away.set(instanceId, { ...whose, ...kept });
        void this.#session?.record.emit("session.canvas.unavailable", whose);
      }
    }
  }

  /** Reopens canvases whose client may be connected now. A canvas that cannot be opened stays pending. */
  async #openAgain(): Promise<void> {
    if (!this.#session) return;
    for (const { instanceId, extensionId, canvasId, input } of [...this.#away.values()]) {
      if (!this.#brought.has(keyOf({ extensionId, canvasId })) || this.#reopening.has(instanceId)) continue;
      this.#reopening.add(instanceId);
      const request = { instanceId, extensionId, canvasId, input };
      await this.show(request, AbortSignal.timeout(OPEN_MS)).catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        this.#session?.record.warn("canvas", `The canvas ${canvasId} could not be reopened: ${why}`);
      });
      this.#reopening.delete(instanceId);
    }
  }

  #tell(before: string): void {
    const canvases = [...this.declared];
    if (JSON.stringify(canvases) !== before)
      void this.#session?.record.emit("session.canvas.registry_changed", { canvases });
  }

  /** Asks the client. Its error is passed on as the client's own, not as an error of the server. */
  async #ask(
    connection: ClientConnection,
    method: string,
    params: object,
    options: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ): Promise<unknown> {
    const workingDirectory = this.#session?.workspace.cwd;
    const context = {
      ...(this.#options.isRendered() && { host: { capabilities: { canvases: true } } }),
      ...(workingDirectory !== undefined && { session: { workingDirectory } }),
    };
    try {
      return await connection.ask(method, { sessionId: this.#options.sessionId, ...params, ...context }, options);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      throw new RpcError(rpcCodes.internalError, `The canvas's client failed: ${error.message}`, error.data);
    }
  }
}

const Shown = z
  .object({
    url: z.string().max(8192).exactOptional(),
    title: z.string().max(1000).exactOptional(),
    status: z.string().max(1000).exactOptional(),
  })
  .nullish()
  .transform((shown) => shown ?? {});

const keyOf = ({ extensionId, canvasId }: { extensionId: string; canvasId: string }): string =>
  JSON.stringify([extensionId, canvasId]);

const isLasting = (extensionId: string): boolean => !extensionId.startsWith(OF_CONNECTION);
