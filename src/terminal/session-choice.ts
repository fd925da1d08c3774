/** The session that the command line asks for, and the way to one of another process. */
import type { Client } from "../sdk/client.ts";

/** Connects to the server of another process of this user; undefined when it has none. */
export type Join = (pid: number, onEnd: () => void) => Promise<Client | undefined>;

export type SessionChoice =
  | { readonly kind: "new" }
  /** The last session of the folder. */
  | { readonly kind: "continue" }
  /** Its id, the beginning of it, or its name. */
  | { readonly kind: "resume"; readonly reference: string }
  /** Like `resume`, in the process that has it open. */
  | { readonly kind: "attach"; readonly reference: string }
  /** The session with this id, or a new one with it. */
  | { readonly kind: "id"; readonly sessionId: string };
