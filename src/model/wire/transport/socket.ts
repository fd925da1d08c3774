import type { RequestOrigin } from "../../provider.ts";

/** A WebSocket to a place, as a client program opens it in the network's place: text messages both ways. */
export interface ModelSocket {
  send(message: string): Promise<void>;
  /** The next message, or nothing when the other side has closed it. Rejects when it broke. One waits at a time. */
  receive(): Promise<string | undefined>;
  /** `cancelled`: in the middle of a reply, which nobody waits for any more. Once is enough. */
  close(how: "done" | "cancelled"): void;
}

/** Rejects when no socket could be opened there. */
export type OpenSocket = (
  url: string,
  options: {
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly origin: RequestOrigin | undefined;
  },
) => Promise<ModelSocket>;
