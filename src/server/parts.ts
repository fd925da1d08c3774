/** The parts of the server that methods use. */
import type { Runtime } from "../runtime/runtime.ts";
import type { HubOptions } from "./hub.ts";
import type { OwnProgram } from "./leave-consolidation.ts";

export interface ServerOptions extends Omit<HubOptions, "acceptExtension" | "beforeClose"> {
  /** The command that starts troupe. With it, a session that closes may leave a consolidation of its board behind. */
  readonly program?: OwnProgram | undefined;
  /** What this process sees, as the runtime was given it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** For people, on stderr. */
  say(message: string): void;
}

/** What methods may use of the server as a whole. */
export interface ServerParts {
  readonly runtime: Runtime;
  readonly options: ServerOptions;
  /** Ends every session and answers nothing more. */
  shutDown(): Promise<void>;
}
