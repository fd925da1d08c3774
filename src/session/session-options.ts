import type { Hooks } from "../hooks/fire.ts";
import type { Emit, WorkingDirectory } from "../protocol/event.ts";
import type { CompanyOptions } from "./company.ts";
import type { RunSettings } from "./start-run.ts";

/** Everything a session is made of. */
export interface SessionOptions extends RunSettings {
  readonly version: string;
  readonly context: WorkingDirectory;
  readonly name?: string;
  /** The agents that may work for the main one. */
  readonly company?: CompanyOptions;
  /** How long an agent that is done waits for those in the background before the session counts as idle. */
  readonly waitForAgentsMs?: number;
  /** Those who are told what happens and may have a say. */
  readonly hooks?: (emit: Emit) => Hooks;
  /** Told before each message is answered, for what belongs to one message as a whole. */
  readonly onMessage?: (messageId: string) => void;
  /** Ends what its tools have open, before the log is let go of. */
  readonly onClose?: () => Promise<void>;
  /** A listener threw; reported as a warning of the process unless told. */
  readonly onDefect?: (error: unknown) => void;
}
