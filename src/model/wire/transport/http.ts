/** Sends one POST. All waiting is bounded: see `Bounds`. */
import { setImmediate as nextTask } from "node:timers/promises";
import { ModelError } from "../../model-error.ts";
import type { Bounds } from "../endpoint.ts";
import { limits } from "../limits.ts";
import { endpointOrigin, httpError, networkError, protocolError } from "../wire-error.ts";
import { addressOf, boundsFor, type Post, secretsOf, signInHeaders } from "./http-request.ts";
import type { HttpAnswer } from "./transport.ts";

/** Sends the request and resolves with a success whose body is unread. Throws for anything else. */
export async function post(options: Post): Promise<HttpExchange> {
  const exchange = new HttpExchange(options);
  try {
    await exchange.open();
    return exchange;
  } catch (error) {
    exchange.close();
    throw error;
  }
}

/** A request in progress, from its first byte until `close`. */
export class HttpExchange {
  readonly #options: Post;
  readonly #bounds: Bounds;
  readonly #controller = new AbortController();
  readonly #onAbort = (): void => this.#fail(this.#options.signal.reason);
  #failure: { readonly error: unknown } | undefined;
  #interrupt: ((error: unknown) => void) | undefined;
  #idle: NodeJS.Timeout | undefined;
  #total: NodeJS.Timeout | undefined;
  #answer: HttpAnswer | undefined;
  #pushedBack: Uint8Array | undefined;
  #atEnd = false;
  #bytes = 0;
  #reads = 0;

  constructor(options: Post) {
    this.#options = options;
    this.#bounds = boundsFor(options);
  }

  async open(): Promise<void> {
    const { endpoint, signal } = this.#options;
    const { connectMs, idleMs, totalMs } = this.#bounds;
    const origin = endpointOrigin(endpoint);
    signal.throwIfAborted();
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#total = setTimeout(() => this.#timeOut(`the call took longer than ${seconds(totalMs)}`), totalMs);
    this.#idle = setTimeout(() => this.#timeOut(`no answer from ${origin} within ${seconds(connectMs)}`), connectMs);
    const signedIn = await this.#within(signInHeaders(this.#options));
    this.#answer = await this.#send(signedIn);
    const { status } = this.#answer;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#timeOut(`nothing came from ${origin} for ${seconds(idleMs)}`), idleMs);
    if (status >= 200 && status < 300) return;
    this.hurry(ERROR_BODY_MS);
    const body = await this.#errorBody();
    signal.throwIfAborted();
    throw httpError(endpoint, { status, header: this.#answer.header, body, secrets: secretsOf(signedIn, endpoint) });
  }

  /** Returns the next bytes, or `undefined` at the end. */
  async read(): Promise<Uint8Array | undefined> {
    const held = this.#pushedBack;
    this.#pushedBack = undefined;
    if (held) return held;
    if (this.#answer === undefined || this.#atEnd) return undefined;
    // A source that never leaves the microtask queue must not block the timers.
    if (++this.#reads % 512 === 0) await this.#within(nextTask());
    const value = await this.#within(this.#answer.read());
    if (value === undefined) {
      this.#atEnd = true;
      return undefined;
    }
    this.#bytes += value.length;
    if (this.#bytes > limits.responseBytes) {
      throw protocolError(
        this.#options.endpoint.id,
        `the reply is larger than ${limits.responseBytes / 1024 / 1024} MiB`,
      );
    }
    return value;
  }

  /**
   * Returns the first non-blank byte without consuming it, or `undefined` if there is none. More reliable than the
   * content type.
   */
  async firstByte(): Promise<number | undefined> {
    for (let chunk = await this.read(); chunk !== undefined; chunk = await this.read()) {
      const start = chunk.findIndex((byte, at) => !isBlank(byte) && !(at < 3 && isByteOrderMark(chunk)));
      if (start === -1) continue;
      this.#pushedBack = chunk;
      return chunk[start];
    }
    return undefined;
  }

  /** Returns the rest of the body. */
  async text(maxBytes: number): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    for (let chunk = await this.read(); chunk !== undefined; chunk = await this.read()) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        throw protocolError(this.#options.endpoint.id, `the reply is larger than ${maxBytes / 1024 / 1024} MiB`);
      }
      if (chunk.some((byte) => !isBlank(byte))) this.progress();
      text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
  }

  /** Restarts the idle timer. Call for every real event. */
  progress(): void {
    this.#idle?.refresh();
  }

  /** Limits the remaining time for the server. */
  hurry(milliseconds: number): void {
    const bound = Math.min(milliseconds, this.#bounds.idleMs);
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#timeOut(`the reply was not ended within ${seconds(bound)}`), bound);
  }

  /**
   * Frees timers and the connection. After a reply that was read to its last event, the connection is reused for the
   * next call if the server ends the body soon.
   */
  close(read: "finished" | "abandoned" = "abandoned"): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#total);
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    if (this.#atEnd) return;
    if (read === "finished" && this.#failure === undefined) void this.#drain();
    else this.#drop();
  }

  async #send(headers: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const { send, body, origin } = this.#options;
    const url = addressOf(this.#options);
    try {
      const answer = send({ url, headers, body, origin, signal: this.#controller.signal });
      answer.then((late) => this.#failure && late.cancel()).catch(() => {});
      return await this.#within(answer);
    } catch (cause) {
      throw this.#reason(cause);
    }
  }

  async #errorBody(): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    try {
      while (this.#bytes < limits.errorBodyBytes) {
        const chunk = await this.read();
        if (chunk === undefined) break;
        text += decoder.decode(chunk.subarray(0, limits.errorBodyBytes), { stream: true });
      }
    } catch {
      // The status alone is enough.
    }
    return text;
  }

  /** Waits for `work`, but not past a time limit or an abort, even if the work ignores both. */
  #within<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      if (this.#failure) reject(this.#failure.error);
      work.then(resolve, (cause) => reject(this.#reason(cause)));
    });
  }

  #reason(cause: unknown): unknown {
    if (this.#failure) return this.#failure.error;
    if (cause instanceof ModelError) return cause;
    return networkError(this.#options.endpoint, endpointOrigin(this.#options.endpoint), cause);
  }

  #timeOut(what: string): void {
    const { endpoint } = this.#options;
    const hint = `Try again. For a model that thinks for long, raise "timeouts" of ${endpoint.id} in providers.json.`;
    this.#fail(new ModelError(`${endpoint.id}: ${what}`, { kind: "timeout", provider: endpoint.id, hint }));
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#controller.abort(error);
    this.#interrupt?.(this.#failure.error);
  }

  async #drain(): Promise<void> {
    const timer = setTimeout(() => this.#drop(), DRAIN_MS);
    timer.unref();
    try {
      for (let bytes = 0; bytes < limits.errorBodyBytes; ) {
        const chunk = await this.#answer?.read();
        if (!chunk) return;
        bytes += chunk.length;
      }
      this.#drop();
    } catch {
      // The reply is complete, so it does not matter how the connection ends.
    } finally {
      clearTimeout(timer);
    }
  }

  #drop(): void {
    this.#failure ??= { error: protocolError(this.#options.endpoint.id, "the reply was not read to its end") };
    this.#answer?.cancel();
    this.#controller.abort();
  }
}

const ERROR_BODY_MS = 5_000;
const DRAIN_MS = 500;

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 100) / 10} s`;
}

function isBlank(byte: number): boolean {
  return byte === 32 || (byte >= 9 && byte <= 13);
}

function isByteOrderMark(chunk: Uint8Array): boolean {
  return chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf;
}
