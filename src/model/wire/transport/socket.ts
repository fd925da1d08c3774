import type { RequestOrigin } from "../../provider.ts";

/** A WebSocket that a client program opens instead of the network: text messages both ways. */
export interface ModelSocket {
  send(message: string): Promise<void>;
  /**
   * Returns the next message, or `undefined` when the other side has closed. Rejects when the socket broke. Only one
   * call at a time.
   */
  receive(): Promise<string | undefined>;
  /** `cancelled`: during a reply that is no longer needed. Calling it once is enough. */
  close(how: "done" | "cancelled"): void;
}

/** Rejects when no socket could be opened. */
export type OpenSocket = (
  url: string,
  options: {
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly origin: RequestOrigin | undefined;
  },
) => Promise<ModelSocket>;
