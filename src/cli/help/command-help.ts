import { options } from "../options.ts";
import type { Command, Subcommand } from "../table/command.ts";
import { entry, flagTerm, usageLine, WIDTH, wrap } from "./lines.ts";

/** Returns the help text of a command, or of one of its subcommands. */
export function commandHelp(command: Command, subcommand?: Subcommand): string {
  const parts = subcommand ? ofSubcommand(command, subcommand) : ofCommand(command);
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

const FLAG_COLUMN = 30;

function ofCommand(command: Command): string[] {
  const { name, summary, subcommands = [], docs } = command;
  const own = command.arguments !== undefined || subcommands.length === 0 ? [usageLine([name], command)] : [];
  const lines = subcommands.map((one) => entry(usageLine([name, one.name], withoutFlags(one)), one.summary, 6));
  const usual = command.usual && `Without a subcommand, ${command.usual} runs.`;
  return [
    wrap(`troupe ${name}: ${summary}`, WIDTH).join("\n"),
    examplesText(command),
    section(
      "Usage",
      own.map((line) => `  ${line}`),
    ),
    section("Subcommands", lines),
    section("Flags", flagLines(command)),
    ...(command.notes ?? []).map((note) => wrap(note, WIDTH).join("\n")),
    ...(subcommands.length > 0 ? [usual ?? "", `Flags of a subcommand: \`troupe ${name} <subcommand> --help\``] : []),
    docs ? `More: ${docs}` : "",
  ];
}

function ofSubcommand({ name }: Command, subcommand: Subcommand): string[] {
  return [
    wrap(`troupe ${name} ${subcommand.name}: ${subcommand.summary}`, WIDTH).join("\n"),
    examplesText(subcommand),
    section("Usage", [`  ${usageLine([name, subcommand.name], subcommand)}`]),
    section("Flags", flagLines(subcommand)),
    subcommand.takesSessionFlags ? "It also takes the flags of a prompt: see `troupe help flags`." : "",
    ...(subcommand.notes ?? []).map((note) => wrap(note, WIDTH).join("\n")),
  ];
}

const withoutFlags = ({ name, summary, arguments: given = [] }: Subcommand): Subcommand => ({
  name,
  summary,
  arguments: given,
});

const section = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? "" : [`${title}:`, ...lines].join("\n");

const examplesText = ({ examples = [] }: Subcommand): string =>
  section(
    "Examples",
    examples.flatMap(([line, comment]) => [`  ${line}`, `      ${comment}`]),
  );

/** Returns the flags that the entry names, with the command's own words where it has some. */
function flagLines({ flags = {} }: Subcommand): string[] {
  return Object.entries(flags).flatMap(([name, help]) => {
    const option = options.find((one) => one.name === name);
    return option ? [entry(flagTerm(option), help === true ? option.help : help, FLAG_COLUMN)] : [];
  });
}
