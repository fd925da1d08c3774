/** The parts of the server that methods use. */
import type { Runtime } from "../runtime/runtime.ts";
import type { HubOptions } from "./hub.ts";
import type { OwnProgram } from "./leave-consolidation.ts";

export interface ServerOptions extends Omit<HubOptions, "acceptExtension" | "beforeClose"> {
  /** The command that starts troupe. With it, a session that closes may start a process that consolidates its board. */
  readonly program?: OwnProgram | undefined;
  /** The environment of this process, as the runtime received it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes a message for the user to stderr. */
  say(message: string): void;
}

export interface ServerParts {
  readonly runtime: Runtime;
  readonly options: ServerOptions;
  /** Closes every session. No request is answered afterwards. */
  shutDown(): Promise<void>;
}
