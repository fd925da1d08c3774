/**
 * The table of commands. Each file in this folder describes one command as plain data with a loader; `command-list.ts` is the
 * list. Dispatch, flag checks, suggestions, help, completion, the man page and the reference page all read it.
 * A prompt does not load it.
 */
import type { Arguments } from "../args.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";

/** A value that the shell can complete, or a fixed list of words. */
export type Completion =
  | "agent"
  | "command"
  | "file"
  | "folder"
  | "model"
  | "server"
  | "session"
  | "setting"
  | "topic"
  | readonly string[];

interface Argument {
  /** As shown in the usage line, without brackets: `id|name`. */
  readonly name: string;
  readonly optional?: true;
  readonly repeated?: true;
  readonly values?: Completion;
}

/** Names of options. `true` uses the help text of the option; a text replaces it. */
type FlagUses = Readonly<Record<string, string | true>>;

/** A command line and a comment. */
type Example = readonly [line: string, comment: string];

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  readonly arguments?: readonly Argument[];
  readonly flags?: FlagUses;
  /** Also takes the flags of a prompt: `--model`, `--allow-tool` and so on. */
  readonly takesSessionFlags?: true;
  /** Commands with subcommands may leave out the examples of these. */
  readonly examples?: readonly Example[];
  /** Paragraphs below the flags. */
  readonly notes?: readonly string[];
}

export const commandGroups = ["Sessions", "Agents", "Knowledge", "Setup", "Many machines"] as const;

export interface Command extends Subcommand {
  readonly group: (typeof commandGroups)[number];
  readonly examples: readonly Example[];
  readonly subcommands?: readonly Subcommand[];
  /** The subcommand that runs if none is named. Its flags are those of the bare command. */
  readonly usual?: string;
  /** Pages in `docs`, without the ending. */
  readonly docs?: string;
  load(): Promise<(given: Arguments, launcher: Launcher) => Promise<ExitCode>>;
}
