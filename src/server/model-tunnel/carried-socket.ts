import { type Deferred, deferred } from "../../lib/deferred.ts";
import type { ModelSocket } from "../../model/wire/transport/socket.ts";
import type { ForwardedRequest, ResponseHead, ResponsePart } from "./carried-request.ts";

/** A WebSocket that a client holds. Each part is one message. */
export class CarriedSocket implements ForwardedRequest, ModelSocket {
  /** The session that uses it. */
  readonly sessionId: string | undefined;
  readonly #client: Pick<ModelSocket, "send" | "close">;
  readonly #opened = deferred<void>();
  #hasBegun = false;
  /** Received messages that were not read yet. `taken` resolves their sender's wait. */
  readonly #messages: { readonly text: string; readonly taken: Deferred<void> }[] = [];
  #reader: Deferred<string | undefined> | undefined;
  /** Set when the socket has ended. It has a reason if the socket failed. */
  #end: { readonly reason?: unknown } | undefined;

  constructor(sessionId: string | undefined, client: Pick<ModelSocket, "send" | "close">) {
    this.sessionId = sessionId;
    this.#client = client;
    this.#opened.promise.catch(() => undefined);
  }

  /** Rejects when the client could not open it. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  begin({ status, statusText }: ResponseHead): boolean {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    if (status === SWITCHING) this.#opened.resolve();
    else this.fail(new TypeError(`No WebSocket could be opened (${`HTTP ${status} ${statusText ?? ""}`.trim()}).`));
    return true;
  }

  async add({ data, binary, end }: ResponsePart): Promise<void> {
    const text = binary ? Buffer.from(data, "base64").toString("utf8") : data;
    if (text !== "" && !this.#end) await this.#arrived(text);
    if (end) this.#over({});
  }

  fail(reason: unknown): void {
    this.#over({ reason });
  }

  async send(message: string): Promise<void> {
    if (this.#end) throw new TypeError("The WebSocket is closed.");
    await this.#client.send(message);
  }

  receive(): Promise<string | undefined> {
    const next = this.#messages.shift();
    next?.taken.resolve();
    if (next) return Promise.resolve(next.text);
    if (this.#end)
      return this.#end.reason === undefined ? Promise.resolve(undefined) : Promise.reject(this.#end.reason);
    this.#reader = deferred();
    return this.#reader.promise;
  }

  close(how: "done" | "cancelled"): void {
    for (const { taken } of this.#messages.splice(0)) taken.resolve();
    if (this.#end) return;
    this.#over({ reason: new TypeError("The WebSocket was abandoned.") });
    this.#client.close(how);
  }

  #arrived(text: string): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader) {
      reader.resolve(text);
      return Promise.resolve();
    }
    const taken = deferred<void>();
    this.#messages.push({ text, taken });
    return taken.promise;
  }

  #over(end: { readonly reason?: unknown }): void {
    if (this.#end) return;
    this.#end = end;
    const { reason = new TypeError("The WebSocket was closed before it was open.") } = end;
    this.#opened.reject(reason);
    if (end.reason === undefined) this.#reader?.resolve(undefined);
    else this.#reader?.reject(end.reason);
    this.#reader = undefined;
  }
}

const SWITCHING = 101;
