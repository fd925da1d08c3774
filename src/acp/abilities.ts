import type { InitializeParams } from "./params.ts";

/** The optional parts of the protocol that an editor supports. */
export interface Abilities {
  /** It shows forms: `elicitation/create` in the mode `form`. */
  readonly forms: boolean;
  /** It opens addresses for the user: the mode `url` of the same request. */
  readonly addresses: boolean;
  readonly notices: boolean;
  readonly compaction: boolean;
  /** Each agent has a session of its own. A draft of the protocol. */
  readonly subagents: boolean;
  /** It reads files with their unsaved changes, `fs/read_text_file`. */
  readonly readsFiles: boolean;
  /** It writes files, `fs/write_text_file`. */
  readonly writesFiles: boolean;
  /** It runs the agent's program in a terminal for a sign-in: methods of the type `terminal`. */
  readonly terminalSignIn: boolean;
  /** The same, as editors supported it before the protocol did: `_meta["terminal-auth"]`. */
  readonly terminalSignInMeta: boolean;
  /** It draws a terminal from `_meta.terminal_output`. Not part of the protocol; several editors and agents use it. */
  readonly terminalOutput: boolean;
}

export const noAbilities: Abilities = {
  forms: false,
  addresses: false,
  notices: false,
  compaction: false,
  subagents: false,
  readsFiles: false,
  writesFiles: false,
  terminalSignIn: false,
  terminalSignInMeta: false,
  terminalOutput: false,
};

/** Any object means supported; absent and null mean unsupported. */
const isOffered = (value: unknown): boolean => typeof value === "object" && value !== null;

export function abilitiesOf({ clientCapabilities: client }: InitializeParams): Abilities {
  return {
    forms: isOffered(client?.elicitation?.form),
    addresses: isOffered(client?.elicitation?.url),
    notices: isOffered(client?.session?.notices),
    compaction: isOffered(client?.session?.compaction),
    subagents: isOffered(client?.subagents),
    readsFiles: client?.fs?.readTextFile === true,
    writesFiles: client?.fs?.writeTextFile === true,
    terminalSignIn: client?.auth?.terminal === true,
    terminalSignInMeta: client?._meta?.["terminal-auth"] === true,
    terminalOutput: client?._meta?.terminal_output === true,
  };
}
