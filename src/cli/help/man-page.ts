/** The man page, in the man macro package of roff. */

import { commands } from "../command-list.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Option, options } from "../options.ts";
import { type Command, commandGroups, type Subcommand } from "../table/command.ts";
import { variables } from "./environment.ts";
import { exitCodeMeanings } from "./exit-code-meanings.ts";
import { argumentsText } from "./lines.ts";

export function manPage(version: string): string {
  const parts = [
    `.TH TROUPE 1 "" "troupe ${roff(version)}" "User Commands"`,
    section("NAME", ["troupe \\- a coding agent for the terminal"]),
    section("SYNOPSIS", [
      ".B troupe",
      "[\\fIflags\\fR]",
      ".br",
      ".B troupe",
      "\\-p \\fIprompt\\fR [\\fIflags\\fR]",
      ".br",
      ".B troupe",
      "\\fIcommand\\fR [\\fIarguments\\fR] [\\fIflags\\fR]",
    ]),
    section("DESCRIPTION", [
      "Without arguments troupe opens an interactive session. With \\-p it runs one prompt: the answer goes to standard",
      "output, progress to standard error. Piped input is added to the prompt.",
    ]),
    ...commandGroups.map((group) =>
      section(`COMMANDS: ${group.toUpperCase()}`, commands.filter((one) => one.group === group).flatMap(commandLines)),
    ),
    section(
      "FLAGS",
      options.filter(({ group }) => group !== "Commands").flatMap((one) => flagLines(one, one.help)),
    ),
    section("EXIT STATUS", exitLines()),
    section(
      "ENVIRONMENT",
      Object.entries(variables).flatMap(([name, help]) => item(name, help)),
    ),
    section("SEE ALSO", ["\\fBtroupe help\\fR \\fIcommand\\fR, \\fBtroupe help\\fR \\fItopic\\fR"]),
  ];
  return `${parts.join("\n")}\n`;
}

/** Escapes text. A period or quote at the start of a line would be a macro. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\\\")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll("–", "\\(en")
    .replace(/^([.'])/gm, "\\&$1");
}

const section = (title: string, lines: readonly string[]): string => [`.SH ${title}`, ...lines].join("\n");

const item = (term: string, text: string): string[] => [".TP", `\\fB${roff(term)}\\fR`, roff(text)];

function commandLines(command: Command): string[] {
  const { name, subcommands = [], examples } = command;
  const isCalledAlone = command.arguments !== undefined || subcommands.length === 0;
  return [
    `.SS troupe ${roff(name)}`,
    `${roff(command.summary)}.`,
    ...(isCalledAlone ? callLines([name], command) : []),
    ...subcommands.flatMap((one) => callLines([name, one.name], one)),
    ".PP",
    ".nf",
    ...examples.flatMap(([line]) => [`    ${roff(line)}`]),
    ".fi",
  ];
}

function callLines(path: readonly string[], command: Subcommand): string[] {
  const call = ["troupe", ...path].join(" ");
  const flags = Object.entries(command.flags ?? {}).flatMap(([name, help]) => {
    const option = options.find((one) => one.name === name);
    return option ? flagLines(option, help === true ? option.help : help) : [];
  });
  const nested = flags.length === 0 ? [] : [".RS", ...flags, ".RE"];
  return [".TP", `\\fB${roff(call)}\\fR ${roff(argumentsText(command))}`.trimEnd(), roff(command.summary), ...nested];
}

function flagLines({ name, short, value }: Option, help: string): string[] {
  const flag = `${short ? `-${short}, ` : ""}--${name}${value ? ` <${value}>` : ""}`;
  return item(flag, help);
}

const exitLines = (): string[] =>
  Object.entries(exitCodes).flatMap(([name, code]) =>
    item(String(code), exitCodeMeanings[name as keyof typeof exitCodes]),
  );
