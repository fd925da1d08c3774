import { deferred } from "../../lib/deferred.ts";

/** A request that a client forwards and has not finished. */
export interface ForwardedRequest {
  /** Returns false if the response has already begun. */
  begin(head: ResponseHead): boolean;
  /** Resolves when there is room for more. */
  add(part: ResponsePart): Promise<void>;
  fail(reason: unknown): void;
}

export interface ResponseHead {
  readonly status: number;
  readonly statusText?: string | undefined;
  readonly headers: Readonly<Record<string, readonly string[]>>;
}

export interface ResponsePart {
  readonly data: string;
  readonly binary?: boolean | undefined;
  readonly end?: boolean | undefined;
  readonly error?: { readonly message: string } | undefined;
}

/** Statuses of responses without a body. */
const BODILESS = new Set([204, 205, 304]);

/** A request over HTTP. */
export class CarriedRequest implements ForwardedRequest {
  readonly head = deferred<Response>();
  readonly #body = new TransformStream<Uint8Array, Uint8Array>();
  readonly #writer = this.#body.writable.getWriter();
  #hasBegun = false;

  begin({ status, statusText = "", headers }: ResponseHead): boolean {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    if (status < 200) {
      this.fail(new TypeError(`HTTP ${status} is not a valid answer to this request.`));
      return true;
    }
    const all = Object.entries(headers).flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const body = BODILESS.has(status) ? null : this.#body.readable;
    this.head.resolve(new Response(body, { status, statusText, headers: all }));
    return true;
  }

  async add({ data, binary, end }: ResponsePart): Promise<void> {
    // A write fails if the reader cancelled, which is not an error of the client.
    if (data !== "") await this.#writer.write(Buffer.from(data, binary ? "base64" : "utf8")).catch(() => undefined);
    if (end) await this.#writer.close().catch(() => undefined);
  }

  fail(reason: unknown): void {
    this.head.reject(reason);
    this.head.promise.catch(() => undefined);
    void this.#writer.abort(reason).catch(() => undefined);
  }
}
