/** The way to the server: one event stream per tab, and commands by POST. */
import { signal } from "@preact/signals";
import type { ListMessage, ReadyMessage } from "../api.ts";
import { serverMessages } from "./messages.ts";
import { shareToken, tokenHeaders } from "./token.ts";

export type LinkState = "connecting" | "open" | "lost" | "refused";
export const link = signal<LinkState>("connecting");

export interface StreamListener {
  onList(message: ListMessage): void;
  onEvents(events: readonly unknown[], last: number): void;
  /** Everything that was stored has arrived. */
  onReady(about: ReadyMessage): void;
}

/** Calls a method. Rejects with the words of the server. */
export async function call<T = unknown>(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<T> {
  const response = await fetch("/rpc", {
    method: "POST",
    headers: { "content-type": "application/json", ...tokenHeaders() },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  if (!response.ok) throw new Error((await response.text()).trim() || `The server answered ${response.status}.`);
  const { result, error } = (await response.json()) as { result?: T; error?: { message: string } };
  if (error) throw new Error(error.message);
  return result as T;
}

const RETRY_MS = 1_000;

/**
 * The stream of this tab. It names the session that the tab shows, and how far the tab has it: closed while the tab is
 * hidden, it continues from there without gap or duplicate.
 */
export class Stream {
  readonly #listener: StreamListener;
  readonly #shared: ReturnType<typeof shareToken>;
  #open: AbortController | undefined;
  #sessionId: string | undefined;
  #last = 0;

  constructor(listener: StreamListener) {
    this.#listener = listener;
    document.addEventListener("visibilitychange", () => this.#follow());
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", () => this.#follow());
    this.#shared = shareToken(
      () => link.value === "open",
      () => this.#again(),
    );
  }

  /** Watches this session, after the event with this number. */
  watch(sessionId: string | undefined, last: number): void {
    this.#sessionId = sessionId;
    this.#last = last;
    this.#again();
  }

  #again(): void {
    this.#close();
    this.#follow();
  }

  #follow(): void {
    if (document.visibilityState === "hidden") this.#close();
    else if (!this.#open) this.#start();
  }

  #start(): void {
    this.#open = new AbortController();
    void this.#read(this.#open);
  }

  #close(): void {
    this.#open?.abort();
    this.#open = undefined;
  }

  /** Reads until the connection ends, and then follows again. `EventSource` cannot send the token. */
  async #read(own: AbortController): Promise<void> {
    const query = new URLSearchParams();
    if (this.#sessionId !== undefined) query.set("session", this.#sessionId);
    if (this.#last > 0) query.set("after", String(this.#last));
    let isRefused = false;
    try {
      const response = await fetch(`/events?${query}`, { headers: tokenHeaders(), signal: own.signal });
      isRefused = response.status === 401;
      if (response.ok && response.body) {
        link.value = "open";
        this.#shared.offer();
        for await (const message of serverMessages(response.body)) {
          if (own.signal.aborted) return;
          this.#take(message);
        }
      }
    } catch {
      // The connection was lost, or closed here.
    }
    if (own.signal.aborted) return;
    link.value = isRefused ? "refused" : "lost";
    // A server that was started again does not know this tab: only a new login helps, which another tab may have.
    if (isRefused) return this.#shared.ask();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    if (this.#open === own) this.#again();
  }

  #take({ kind, id, data }: { readonly kind: string; readonly id: number; readonly data: string }): void {
    if (kind === "list") this.#listener.onList(JSON.parse(data) as ListMessage);
    else if (kind === "ready") this.#listener.onReady(JSON.parse(data) as ReadyMessage);
    else if (kind === "events") {
      this.#last = Math.max(this.#last, id);
      this.#listener.onEvents((JSON.parse(data) as { events: unknown[] }).events, id);
    }
  }
}
