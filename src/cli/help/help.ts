/** `troupe help`, `--help` of every command, and the help topics. Everything is drawn from the table of commands. */
import { nearest } from "../../lib/text.ts";
import { version } from "../../runtime/version.ts";
import { type Arguments, usage } from "../args.ts";
import { commands } from "../command-list.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { write } from "../output/output.ts";
import type { Command } from "../table/command.ts";
import { commandHelp } from "./command-help.ts";
import { helpWidth } from "./lines.ts";
import { mainHelp } from "./main-help.ts";
import { topics } from "./topics.ts";

/** Serves `troupe help <words>`, `troupe <words> help` and `troupe <words> --help`. */
export async function helpCommand(given: Arguments): Promise<ExitCode> {
  const words = given.words.filter((word, index, all) => word !== "help" || (index > 0 && index < all.length - 1));
  if (given.has("man")) await write((await import("./man-page.ts")).manPage(version));
  else await write(await helpFor(words));
  return exitCodes.done;
}

async function helpFor(words: readonly string[]): Promise<string> {
  const [word, second] = words;
  const width = helpWidth(process.stdout.isTTY ? process.stdout.columns : undefined);
  if (word === undefined || word === "-") return mainHelp(version, width);
  const command = commands.find(({ name }) => name === word);
  const topic = second === undefined ? topics.find(({ name }) => name === word) : undefined;
  if (command === undefined && topic === undefined) throw unknownWord(word);
  const own = command ? commandHelp(command, subcommandOf(command, second), width) : undefined;
  const about = topic ? await styleHelp(await topic.text()) : undefined;
  return [own, about].filter((text) => text !== undefined).join("\n");
}

function subcommandOf({ name: command, subcommands = [], arguments: own }: Command, word: string | undefined) {
  const found = subcommands.find(({ name }) => name === word);
  if (found !== undefined || word === undefined || own !== undefined || subcommands.length === 0) return found;
  const close = nearest(
    word,
    subcommands.map(({ name }) => name),
  );
  throw usage(
    `There is no troupe ${command} ${word}.${close ? ` Did you mean ${close}?` : ""}`,
    `See \`troupe help ${command}\`.`,
  );
}

/** A terminal shows Markdown; a pipe or file gets it as it is. */
async function styleHelp(text: string): Promise<string> {
  const { stdout, env } = process;
  if (!stdout.isTTY || env.NO_COLOR || env.TERM === "dumb") return text;
  const { renderMarkdown } = await import("../markdown.ts");
  return renderMarkdown(text, (stdout.columns || 80) - 1);
}

function unknownWord(word: string) {
  const names = [...commands, ...topics].map(({ name }) => name);
  const close = nearest(word, names);
  const offer = close ? `Did you mean troupe help ${close}?` : `Topics: ${topics.map(({ name }) => name).join(", ")}.`;
  return usage(`There is no command or topic "${word}". ${offer}`);
}
