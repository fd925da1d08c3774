/**
 * Slash commands, which users type in place of a prompt. A command makes a prompt, switches the mode, or answers
 * through small ports from session state; the work is done elsewhere. Only text that a user or client sends is parsed
 * as a command, never text from files, tools or schedules. This folder has one file per command and one line for each
 * in `list.ts`.
 */
import type { EventData } from "../protocol/event.ts";
import type { CommandPorts, PortName } from "./ports.ts";

/** How independently an agent works: together with the user, planning only, or until the task is done. */
export type SessionMode = EventData<"session.mode_changed">["newMode"];

/** State available to every command. */
interface CommandState {
  readonly mode: SessionMode;
  /** The session's folder for files, which its agents may write; absolute, without a trailing slash. */
  readonly filesFolder: string;
  now(): number;
}

/** A missing port means that the surface lacks the feature. Commands that need it are not offered. */
export type CommandContext = CommandState & Partial<CommandPorts>;

export type CommandResult =
  /** The command is done; the text is for the user. */
  | { readonly kind: "completed"; readonly text: string }
  | PromptResult
  | { readonly kind: "mode"; readonly mode: SessionMode; readonly text: string }
  /** Sends the skill's text to the model, followed by the request if it is not empty. */
  | { readonly kind: "skill"; readonly name: string; readonly request: string };

/** A message to the agent. */
export interface PromptResult {
  readonly kind: "prompt";
  readonly prompt: string;
  /** Text shown to users in place of the prompt. */
  readonly displayPrompt: string;
  /** Mode to switch to before the message is sent. */
  readonly mode?: SessionMode;
  /** Limits for the answer to this message; all other calls are refused. */
  readonly toolLimits?: ToolLimits;
  /** Agents that the answer may start although models may not choose them. */
  readonly agents?: readonly string[];
  /** The answer is incomplete without a call of this tool. */
  readonly requiredTool?: string;
  /** Check that runs before the agent stops. */
  readonly gate?: Gate;
}

/** Limits the calls of the main agent while it answers one message. */
export interface ToolLimits {
  /** Names of the only available tools. */
  readonly available: readonly string[];
  /** Returns why a call of one of these tools is refused, for the model; undefined if the call may run. */
  reasonToRefuse?(call: LimitedCall): string | undefined;
}

export interface LimitedCall {
  readonly toolName: string;
  /** As the model sent them. */
  readonly arguments: unknown;
  /** Returns the absolute path, resolved as tools resolve it. */
  resolve(path: string): string;
  /** Returns true for the file that holds a long result of this tool, written while the message was answered. */
  isOutputOf(toolName: string, path: string): boolean;
}

export type Gate = { readonly kind: "research"; readonly reportPath: string } | { readonly kind: "fleet" };

export interface Command {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly argumentHint?: string;
  readonly needs: readonly PortName[];
  /**
   * Returns true if the command neither changes files, modes or settings, nor stops anything. Messages of programs may
   * run it.
   */
  isHarmless(argumentText: string): boolean;
  /** Throws a `TroupeError` if the arguments are invalid. */
  run(argumentText: string, context: CommandContext): CommandResult | Promise<CommandResult>;
}

/** Defines a command. The ports named in `needs` are defined inside `run`. */
export function defineCommand<N extends PortName = never>(definition: {
  name: string;
  aliases?: readonly string[];
  summary: string;
  argumentHint?: string;
  needs?: readonly N[];
  /** "alone": only without an argument. Default: never harmless. */
  harmless?: "always" | "alone" | ((argumentText: string) => boolean);
  run(argumentText: string, context: CommandContext & Pick<CommandPorts, N>): CommandResult | Promise<CommandResult>;
}): Command {
  const { aliases = [], needs = [], harmless, run, ...rest } = definition;
  return {
    ...rest,
    aliases,
    needs,
    isHarmless: (argumentText) =>
      typeof harmless === "function"
        ? harmless(argumentText)
        : harmless === "always" || (harmless === "alone" && argumentText === ""),
    // Callers check `needs` first: see `isOffered`.
    run: (argumentText, context) => run(argumentText.trim(), context as CommandContext & Pick<CommandPorts, N>),
  };
}

export function isOffered(command: Command, context: CommandContext): boolean {
  return command.needs.every((port) => context[port] !== undefined);
}
