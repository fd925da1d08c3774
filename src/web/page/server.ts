/** The way to the server: one event stream per tab, and commands by POST. */
import { signal } from "@preact/signals";
import type { ListMessage } from "../api.ts";

export type Link = "connecting" | "open" | "lost" | "refused";
export const link = signal<Link>("connecting");

export interface StreamListener {
  onList(message: ListMessage): void;
  onEvents(events: readonly unknown[], last: number): void;
  /** Everything that was stored has arrived. */
  onReady(): void;
}

/** Calls a method. Rejects with the words of the server. */
export async function call<T = unknown>(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<T> {
  const response = await fetch("/rpc", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  if (!response.ok) throw new Error((await response.text()).trim() || `The server answered ${response.status}.`);
  const { result, error } = (await response.json()) as { result?: T; error?: { message: string } };
  if (error) throw new Error(error.message);
  return result as T;
}

/**
 * The stream of this tab. It names the session that the tab shows, and how far the tab has it: closed while the tab is
 * hidden, it continues from there without gap or duplicate.
 */
export class Stream {
  readonly #listener: StreamListener;
  #source: EventSource | undefined;
  #sessionId: string | undefined;
  #last = 0;

  constructor(listener: StreamListener) {
    this.#listener = listener;
    document.addEventListener("visibilitychange", () => this.#follow());
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", () => this.#follow());
  }

  /** Watches this session, after the event with this number. */
  watch(sessionId: string | undefined, last: number): void {
    this.#sessionId = sessionId;
    this.#last = last;
    this.#close();
    this.#follow();
  }

  #follow(): void {
    if (document.visibilityState === "hidden") this.#close();
    else this.#open();
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
  }

  #open(): void {
    if (this.#source) return;
    const query = new URLSearchParams();
    if (this.#sessionId !== undefined) query.set("session", this.#sessionId);
    if (this.#last > 0) query.set("after", String(this.#last));
    const source = new EventSource(`/events?${query}`);
    this.#source = source;
    source.onopen = () => {
      link.value = "open";
    };
    source.onerror = () => {
      link.value = source.readyState === EventSource.CLOSED ? "refused" : "lost";
      if (source.readyState === EventSource.CLOSED) this.#retryLater(source);
    };
    source.addEventListener("list", ({ data }) => this.#listener.onList(JSON.parse(data) as ListMessage));
    source.addEventListener("ready", () => this.#listener.onReady());
    source.addEventListener("events", ({ data, lastEventId }) => {
      const last = Number(lastEventId);
      this.#last = Math.max(this.#last, last);
      this.#listener.onEvents((JSON.parse(data) as { events: unknown[] }).events, last);
    });
  }

  /** The server answered with an error: it is being restarted, or the cookie is not valid any more. */
  #retryLater(source: EventSource): void {
    setTimeout(() => {
      if (this.#source !== source) return;
      this.#close();
      this.#follow();
    }, 3_000);
  }
}
