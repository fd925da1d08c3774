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
  readonly toolLimits?: { readonly available: readonly string[] };
  /** Agents that the answer to this message may start, though no model may choose them by itself. */
  readonly agents?: readonly string[];
  /** The answer is not whole without a call of this tool. */
  readonly requiredTool?: string;
  /** Asked before the agent stops. */
  readonly gate?: Gate;
}

export type Gate = { readonly kind: "research"; readonly reportPath: string } | { readonly kind: "fleet" };

export interface Command {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly argumentHint?: string;
  readonly needs: readonly PortName[];
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
  run(argumentText: string, context: CommandContext & Pick<CommandPorts, N>): CommandResult | Promise<CommandResult>;
}): Command {
  const { aliases = [], needs = [], run, ...rest } = definition;
  return {
    ...rest,
    aliases,
    needs,
    // Whoever offers commands has looked at `needs`: see `isOffered`.
    run: (argumentText, context) => run(argumentText.trim(), context as CommandContext & Pick<CommandPorts, N>),
  };
}

export function isOffered(command: Command, context: CommandContext): boolean {
  return command.needs.every((port) => context[port] !== undefined);
}
