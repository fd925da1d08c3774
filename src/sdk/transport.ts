import type { Readable, Writable } from "node:stream";

/** The two ends of a wire to a server, and how to be rid of it. */
export interface Transport {
  readonly input: Readable;
  readonly output: Writable;
  /** Why the wire ended, in words for a person; resolves when it did, never rejects. */
  readonly ended: Promise<string>;
  /** What must be said at the first greeting, where the server asks for it. */
  readonly token?: string;
  /** True when the server lives for this client alone and is to be shut down with it. */
  readonly isOwned: boolean;
  /** Ends it in good order: resolves when nothing of it is left. Can be called again. */
  close(): Promise<void>;
  /** Ends it at once. */
  kill(): void;
}

/** How to reach a server. */
export type Connection =
  /** A process of the client's own, spoken to over its standard input and output. */
  | {
      readonly kind: "stdio";
      /** The program; a file that ends in `.js` is run by this Node. The troupe of this package unless told. */
      readonly path?: string;
      readonly args?: readonly string[];
    }
  /** A server that runs already. */
  | { readonly kind: "tcp"; readonly port: number; readonly host?: string; readonly token?: string }
  /** Whatever else carries messages; `inProcess` of `troupe/server` is one. */
  | { readonly kind: "custom"; open(): Promise<Transport> };
