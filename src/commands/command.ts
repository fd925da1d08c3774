/**
 * Slash commands: what a person types in place of a prompt. A command is a macro: it makes a prompt, switches the mode,
 * or answers through small ports from what the session knows; the work itself is done elsewhere. Only what a person
 * typed is read as a command, never text from files, tools or schedules. One file per command, one line in `list.ts`.
 */
import type { CommandPorts, PortName } from "./ports.ts";

/** How far an agent goes by itself: with the person beside it, only as far as a plan, or until the task is done. */
export type SessionMode = "interactive" | "plan" | "autopilot";

/** What every command may know. */
interface CommandPlace {
  readonly mode: SessionMode;
  /** The session's own folder for files, which its agents may write; absolute, without a slash at its end. */
  readonly filesFolder: string;
  now(): number;
}

/** A port that is missing is a thing this surface does not have; the commands that need it are not offered. */
export type CommandContext = CommandPlace & Partial<CommandPorts>;

export type CommandResult =
  /** All is done; what the person is told. */
  | { readonly kind: "completed"; readonly text: string }
  | PromptResult
  | { readonly kind: "mode"; readonly mode: SessionMode; readonly text: string }
  /** The text of the skill goes to the model, and after it the request, when there is one. */
  | { readonly kind: "skill"; readonly name: string; readonly request: string };

/** A message to the agent. */
export interface PromptResult {
  readonly kind: "prompt";
  readonly prompt: string;
  /** What people see in its place. */
  readonly displayPrompt: string;
  /** The mode is switched first. */
  readonly mode?: SessionMode;
  /** For the answer to this message alone; whatever else the agent calls is refused. */
  readonly toolLimits?: ToolLimits;
  /** Agents that the answer to this message may start, though no model may choose them by itself. */
  readonly agents?: readonly string[];
  /** The answer is not whole without a call of this tool. */
  readonly requiredTool?: string;
  /** Asked before the agent stops. */
  readonly gate?: Gate;
}

/** Limits the calls of the main agent while it answers one message. */
export interface ToolLimits {
  /** Names of the only tools it has. */
  readonly available: readonly string[];
  /** Returns why a call of one of these tools is refused, for the model; undefined when the call may run. */
  refuses?(call: LimitedCall): string | undefined;
}

export interface LimitedCall {
  readonly toolName: string;
  /** As the model gave them. */
  readonly arguments: unknown;
  /** The absolute form of a path as tools read it. */
  resolve(path: string): string;
  /** True for the file that holds a long result of this tool, written while the message was answered. */
  isOutputOf(toolName: string, path: string): boolean;
}

export type Gate = { readonly kind: "research"; readonly reportPath: string } | { readonly kind: "fleet" };

export interface Command {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly argumentHint?: string;
  readonly needs: readonly PortName[];
  /** True when it neither changes files, modes or settings, nor stops anything: a message of a program may run it. */
  isHarmless(argumentText: string): boolean;
  /** Throws a `TroupeError` when the arguments do not fit. */
  run(argumentText: string, context: CommandContext): CommandResult | Promise<CommandResult>;
}

/** Inside `run` the ports that were named in `needs` are there. */
export function defineCommand<N extends PortName = never>(definition: {
  name: string;
  aliases?: readonly string[];
  summary: string;
  argumentHint?: string;
  needs?: readonly N[];
  /** "alone": without an argument. Never unless given. */
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
    // Whoever offers commands has looked at `needs`: see `isOffered`.
    run: (argumentText, context) => run(argumentText.trim(), context as CommandContext & Pick<CommandPorts, N>),
  };
}

export function isOffered(command: Command, context: CommandContext): boolean {
  return command.needs.every((port) => context[port] !== undefined);
}
