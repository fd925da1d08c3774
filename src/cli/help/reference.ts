/** The reference page in docs, drawn from the table of commands. */

import { commands } from "../command-list.ts";
import { type Option, options } from "../options.ts";
import { type Command, commandGroups, type Subcommand } from "../table/command.ts";
import { usageLine } from "./lines.ts";

export function referencePage(): string {
  const groups = commandGroups.map(
    (group) =>
      `## ${group}\n\n${commands
        .filter((one) => one.group === group)
        .map(commandPart)
        .join("\n")}`,
  );
  const flags = options.filter(({ group }) => group !== "Commands");
  return `# Command line

Every command and flag. \`troupe <command> --help\` shows the same in the terminal, \`troupe help <topic>\` explains more.
This page is generated from the table in \`src/cli/table\`.

${groups.join("\n")}
## Flags of a prompt and of a server

${flagTable(flags.map((option) => [option, option.help]))}`;
}

function commandPart(command: Command): string {
  const { name, summary, examples, notes = [], subcommands = [], usual } = command;
  const isCalledAlone = command.arguments !== undefined || subcommands.length === 0;
  const code = examples.map(([line, comment]) => `${line}  # ${comment}`).join("\n");
  return [
    `### troupe ${name}\n`,
    `${sentence(summary)}\n`,
    `\`\`\`sh\n${code}\n\`\`\`\n`,
    ...(isCalledAlone ? [callPart([name], command)] : []),
    ...subcommands.map((one) => callPart([name, one.name], one)),
    ...(usual ? [`Without a subcommand, \`${usual}\` runs.\n`] : []),
    ...notes.map((note) => `${note}\n`),
  ].join("\n");
}

function callPart(path: readonly string[], command: Subcommand): string {
  const head =
    path.length > 1 ? `\`${usageLine(path, command)}\`: ${command.summary}.\n` : `\`${usageLine(path, command)}\`\n`;
  const flags = Object.entries(command.flags ?? {}).flatMap(([name, help]): [Option, string][] => {
    const option = options.find((one) => one.name === name);
    return option ? [[option, help === true ? option.help : help]] : [];
  });
  const notes = path.length > 1 ? (command.notes ?? []).map((note) => `\n${note}\n`) : [];
  return [head, ...(flags.length > 0 ? [`\n${flagTable(flags)}`] : []), ...notes].join("");
}

function flagTable(flags: readonly (readonly [Option, string])[]): string {
  const rows = flags.map(([{ name, short, value }, help]) => {
    const term = `${short ? `-${short}, ` : ""}--${name}${value ? ` <${value}>` : ""}`;
    return `| \`${term.replaceAll("|", "\\|")}\` | ${help.replaceAll("|", "\\|")} |`;
  });
  return `| flag | meaning |\n| --- | --- |\n${rows.join("\n")}\n`;
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
