import { options } from "../options.ts";
import type { Command, Subcommand } from "../table/command.ts";
import { entry, flagTerm, usageLine, WIDTH, wrap } from "./lines.ts";

/** Returns the help text of a command, or of one of its subcommands. Only command lines may exceed the width. */
export function commandHelp(command: Command, subcommand?: Subcommand, width = WIDTH): string {
  const parts = subcommand ? ofSubcommand(command, subcommand, width) : ofCommand(command, width);
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

const FLAG_COLUMN = 30;

function ofCommand(command: Command, width: number): string[] {
  const { name, summary, subcommands = [], docs } = command;
  const own = command.arguments !== undefined || subcommands.length === 0 ? [usageLine([name], command)] : [];
  const lines = subcommands.map((one) => entry(usageLine([name, one.name], withoutFlags(one)), one.summary, 6, width));
  const usual = command.usual && `Without a subcommand, ${command.usual} runs.`;
  return [
    wrap(`troupe ${name}: ${summary}`, width).join("\n"),
    examplesText(command, width),
    section(
      "Usage",
      own.map((line) => `  ${line}`),
    ),
    section("Subcommands", lines),
    section("Flags", flagLines(command, width)),
    ...(command.notes ?? []).map((note) => wrap(note, width).join("\n")),
    ...(subcommands.length > 0
      ? [usual ?? "", wrap(`Flags of a subcommand: \`troupe ${name} <subcommand> --help\``, width).join("\n")]
      : []),
    docs ? `More: ${docs}` : "",
  ];
}

function ofSubcommand({ name }: Command, subcommand: Subcommand, width: number): string[] {
  return [
    wrap(`troupe ${name} ${subcommand.name}: ${subcommand.summary}`, width).join("\n"),
    examplesText(subcommand, width),
    section("Usage", [`  ${usageLine([name, subcommand.name], subcommand)}`]),
    section("Flags", flagLines(subcommand, width)),
    subcommand.takesSessionFlags
      ? wrap("It also takes the flags of a prompt: see `troupe help flags`.", width).join("\n")
      : "",
    ...(subcommand.notes ?? []).map((note) => wrap(note, width).join("\n")),
  ];
}

const withoutFlags = ({ name, summary, arguments: given = [] }: Subcommand): Subcommand => ({
  name,
  summary,
  arguments: given,
});

const section = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? "" : [`${title}:`, ...lines].join("\n");

const examplesText = ({ examples = [] }: Subcommand, width: number): string =>
  section(
    "Examples",
    examples.flatMap(([line, comment]) => [`  ${line}`, ...wrap(comment, width - 6).map((row) => `      ${row}`)]),
  );

/** Returns the flags that the entry names, with the command's own words where it has some. */
function flagLines({ flags = {} }: Subcommand, width: number): string[] {
  return Object.entries(flags).flatMap(([name, help]) => {
    const option = options.find((one) => one.name === name);
    return option ? [entry(flagTerm(option), help === true ? option.help : help, FLAG_COLUMN, width)] : [];
  });
}
