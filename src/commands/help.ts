import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { type Command, type CommandContext, defineCommand, isOffered } from "./command.ts";
import { clipLine, joinLines } from "./lines.ts";
import { promptLines } from "./server-prompts.ts";

/** Builds `/help` from the list of the other commands. */
export function helpCommand(others: () => readonly Command[]): Command {
  const help: Command = defineCommand({
    name: "help",
    summary: "Show the commands, or what one of them does",
    argumentHint: "[command]",
    harmless: "always",
    async run(name, context) {
      const offered = [...others(), help].filter((command) => isOffered(command, context));
      if (name === "") return { kind: "completed", text: await overview(offered, context) };
      const wanted = name.replace(/^\//, "").toLowerCase();
      const command = offered.find((one) => one.name === wanted || one.aliases.includes(wanted));
      if (command) return { kind: "completed", text: line(command) };
      const meant = nearest(
        wanted,
        offered.map((one) => one.name),
      );
      const hint = meant === undefined ? "/help lists the commands." : `Did you mean /help ${meant}?`;
      throw new TroupeError("usage", `There is no command /${clipLine(wanted, 60)} here.`, { hint });
    },
  });
  return help;
}

async function overview(offered: readonly Command[], { skills, serverPrompts }: CommandContext): Promise<string> {
  const hasSkills = (skills?.().length ?? 0) > 0;
  const prompts = (await serverPrompts?.list()) ?? [];
  const lines = offered.map(line);
  if (hasSkills) lines.push("Skills are called like commands; /skills lists them.");
  if (prompts.length > 0) lines.push(promptLines(prompts));
  return joinLines(lines);
}

function line({ name, aliases, argumentHint, summary }: Command): string {
  const also = aliases.length > 0 ? ` (also ${aliases.map((alias) => `/${alias}`).join(", ")})` : "";
  return `/${name}${argumentHint ? ` ${argumentHint}` : ""}${also}: ${summary}`;
}
