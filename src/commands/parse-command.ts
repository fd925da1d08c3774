import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { type Command, type CommandContext, type CommandResult, isOffered } from "./command.ts";
import type { SkillEntry } from "./ports.ts";

export type ParsedInput =
  /** An ordinary prompt. */
  | { readonly kind: "text" }
  | { readonly kind: "command"; readonly command: Command; readonly argumentText: string }
  | { readonly kind: "skill"; readonly skill: SkillEntry; readonly argumentText: string };

export interface KnownCommands {
  readonly commands: readonly Command[];
  readonly skills: readonly SkillEntry[];
  /** Returns whether this absolute path exists: a prompt may begin with one. */
  isPath?(path: string): boolean;
  /**
   * Author of the text (default: the user). A program's text may come from others. So an unknown command name is part
   * of its prompt, and commands that change something are refused.
   */
  readonly from?: "user" | "program";
}

/**
 * Parses input as a command, a skill name or a prompt. Commands win over skills of the same name, because skills may
 * come from the working directory. Throws a `TroupeError` for an unknown command.
 */
export function parseCommand(text: string, known: KnownCommands): ParsedInput {
  const match = FORM.exec(text.trim());
  if (!match) return { kind: "text" };
  const [, typed = "", argumentText = ""] = match;
  const name = typed.toLowerCase();
  const command = known.commands.find((one) => one.name === name || one.aliases.includes(name));
  if (command) return { kind: "command", command, argumentText: argumentText.trim() };
  const skill = known.skills.find((one) => one.commandName.toLowerCase() === name);
  if (skill) return { kind: "skill", skill, argumentText: argumentText.trim() };
  if (known.from === "program" || !PLAIN_NAME.test(name) || known.isPath?.(`/${typed}`)) return { kind: "text" };
  throw unknown(typed, known);
}

/** Runs the command or skill. Returns undefined for an ordinary prompt. */
export async function runCommand(
  text: string,
  context: CommandContext,
  known: Omit<KnownCommands, "skills">,
): Promise<CommandResult | undefined> {
  if (/^\/mcp:/i.test(text.trimStart())) {
    const { runServerPrompt } = await import("./server-prompts.ts");
    const result = await runServerPrompt(text, { port: context.serverPrompts, from: known.from ?? "user" });
    if (result) return result;
  }
  const commands = known.commands.filter((command) => isOffered(command, context));
  const parsed = parseCommand(text, { ...known, commands, skills: context.skills?.() ?? [] });
  switch (parsed.kind) {
    case "text":
      return undefined;
    case "command":
      if (known.from === "program" && !parsed.command.isHarmless(parsed.argumentText))
        throw notByProgram(parsed.command);
      return parsed.command.run(parsed.argumentText, context);
    case "skill":
      return { kind: "skill", name: parsed.skill.name, request: parsed.argumentText };
  }
}

/** One word after the slash; a second slash makes it a path. Skills of plugins have colons and dots. */
const FORM = /^\/([a-z][a-z0-9:._-]{0,63})(?:\s+([\s\S]*))?$/i;
const PLAIN_NAME = /^[a-z][a-z0-9-]*$/;

function notByProgram({ name }: Command): TroupeError {
  const hint = "Call session.commands.invoke to run it, or begin the message with another word.";
  return new TroupeError("usage", `/${name} changes the session, so it cannot be run by a message.`, { hint });
}

function unknown(typed: string, { commands, skills }: KnownCommands): TroupeError {
  const names = [
    ...commands.flatMap(({ name, aliases }) => [name, ...aliases]),
    ...skills.map(({ commandName }) => commandName),
  ];
  const meant = nearest(typed, names);
  const advice = meant === undefined ? "/help lists the commands." : `Did you mean /${meant}?`;
  const hint = `${advice} To send it as a prompt, begin with another word.`;
  return new TroupeError("usage", `There is no command /${typed} here.`, { hint });
}
