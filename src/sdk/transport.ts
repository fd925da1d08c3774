import type { Readable, Writable } from "node:stream";

/** The two streams of a connection to a server, and how to close it. */
export interface Transport {
  readonly input: Readable;
  readonly output: Writable;
  /** Resolves with the reason, for users, when the connection ended. Never rejects. */
  readonly ended: Promise<string>;
  /** The token for the handshake, if the server requires one. */
  readonly token?: string;
  /** True if the server belongs to this client and is shut down with it. */
  readonly isOwned: boolean;
  /** Closes it gracefully. Resolves when all its resources are released. Can be called again. */
  close(): Promise<void>;
  /** Ends it immediately. */
  kill(): void;
}

/** How to reach a server. */
export type Connection =
  /** A process of the client's own, connected over its standard input and output. */
  | {
      readonly kind: "stdio";
      /** The program. A `.js` file is run by this Node. Default: the troupe of this package. */
      readonly path?: string;
      readonly args?: readonly string[];
    }
  /** A running server. */
  | { readonly kind: "tcp"; readonly port: number; readonly host?: string; readonly token?: string }
  /** Another transport, for example `inProcess` of `troupe/server`. */
  | { readonly kind: "custom"; open(): Promise<Transport> };
