/** Runs a command of the table: finds it and its subcommand, checks the flags, then loads it. */
import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { type Arguments, GENERAL_HINT, unknownSubcommand, usage } from "./args.ts";
import { commands } from "./command-list.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { Launcher } from "./launcher.ts";
import { options } from "./options.ts";
import type { Command, Subcommand } from "./table/command.ts";

export async function runCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const [word = "", second] = given.words;
  if (word === "__complete") return (await import("./completion/complete-command.ts")).completeCommand(given);
  const command = commands.find(({ name }) => name === word);
  if (command === undefined) throw unknownCommand(given);
  const isHelp =
    given.words.at(-1) === "help" &&
    (given.words.length === 2 || (given.words.length === 3 && isSubcommand(command, second)));
  if (isHelp) return (await import("./help/help.ts")).helpCommand(given);
  const subcommand = subcommandOf(command, second);
  const title = ["troupe", command.name, ...(subcommand && second !== undefined ? [subcommand.name] : [])].join(" ");
  checkFlags(given, { title, uses: subcommand ?? command });
  const run = await command.load();
  return run(given, launcher).catch((error: unknown) => {
    const isVague = error instanceof TroupeError && error.kind === "usage" && error.hint === GENERAL_HINT;
    throw isVague ? usage(error.message, `See \`${title} --help\`.`) : error;
  });
}

const isSubcommand = ({ subcommands = [] }: Command, word: string | undefined): boolean =>
  subcommands.some(({ name }) => name === word);

/** Returns undefined for a command without subcommands, and for arguments of a command that has both. */
function subcommandOf(command: Command, word: string | undefined): Subcommand | undefined {
  const { subcommands, usual, arguments: own } = command;
  if (subcommands === undefined) return undefined;
  const found = subcommands.find(({ name }) => name === (word ?? usual));
  if (found === undefined && word !== undefined && own === undefined) {
    const names = subcommands.map(({ name }) => name);
    throw unknownSubcommand(command.name, word, names);
  }
  return found;
}

/** Flags that every command takes. */
const COMMON = ["cd", "help", "version", "silent", "log-level"];

/** Returns the names of the flags that a command takes, without those that every command takes. */
export function flagsOf({ flags = {}, takesSessionFlags }: Subcommand): string[] {
  const own = Object.keys(flags);
  const session = takesSessionFlags ? options.filter(({ group }) => !NOT_OF_SESSIONS.includes(group)) : [];
  return [...own, ...session.map(({ name }) => name).filter((name) => !own.includes(name))];
}

const NOT_OF_SESSIONS: readonly string[] = ["Commands", "Other", "Server"];

function checkFlags(given: Arguments, command: { readonly title: string; readonly uses: Subcommand }): void {
  const own = flagsOf(command.uses);
  const taken = new Set([...COMMON, ...own, ...(own.includes("json") ? ["output-format"] : [])]);
  const stray = given.flags.find((name) => !taken.has(name));
  if (stray === undefined) return;
  const listed = Object.keys(command.uses.flags ?? {}).map((name) => `--${name}`);
  const offer = listed.length === 0 ? "" : ` It takes ${listed.join(", ")}.`;
  throw usage(`${command.title} does not take --${stray}.${offer}`, `See \`${command.title} --help\`.`);
}

function unknownCommand(given: Arguments): TroupeError {
  const [word = ""] = given.words;
  const words = given.words.join(" ");
  if (given.text("prompt") !== undefined)
    return usage(`Unexpected argument "${words}". Put the whole prompt in quotes.`);
  const close = nearest(
    word,
    commands.map(({ name }) => name),
  );
  if (close) return usage(`Unknown command "${word}". Did you mean troupe ${close}?`);
  return usage(`Unknown command "${word}". To ask something, use -p: troupe -p "${words}"`);
}
