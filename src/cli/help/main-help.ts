import { commands } from "../command-list.ts";
import { type Command, commandGroups } from "../table/command.ts";
import { entry, WIDTH, wrap } from "./lines.ts";
import { topics } from "./topics.ts";

const beginnings: readonly [string, string][] = [
  ["troupe", "open an interactive session"],
  ['troupe -p "<prompt>"', "run one prompt; the answer goes to stdout"],
  ['git diff | troupe -p "Review"', "add piped input to the prompt"],
  ['troupe -p "Go on" --continue', "continue the last session of this folder"],
];

const commonFlags: readonly (readonly string[])[] = [
  ["-p, --prompt <text>", "--model <model>", "--continue", "--json"],
  ["-C, --cd <folder>", "--allow-tool <rule>", "--resume <id|name>", "--headless"],
  ["-s, --silent", "--deny-tool <rule>", "--max-cost <usd>", "--acp"],
];

const FLAG_COLUMNS = [22, 21, 21];

/** Returns the text of `troupe --help`, which fits one screen. */
export function mainHelp(version: string, width = WIDTH): string {
  const indented = (text: string): string =>
    wrap(text, width - 2)
      .map((row) => `  ${row}`)
      .join("\n");
  return `${wrap(`troupe ${version} – a coding agent for the terminal, on any model or none`, width).join("\n")}

${beginnings.map(([term, help]) => entry(term, help, 33, width)).join("\n")}

${commandGroups.map((group) => groupText(group, width)).join("\n")}

Common flags:
${flagsText(width)}

Help:
${indented("troupe <command> --help, troupe help <command>, troupe help <topic>")}
${indented(`Topics: ${topics.map(({ name }) => name).join(", ")}`)}
`;
}

/** The flags in columns, or one after the other where the columns do not fit. */
function flagsText(width: number): string {
  const rows = commonFlags.map((row) => row.map((flag, column) => flag.padEnd(FLAG_COLUMNS[column] ?? 0)).join(""));
  if (rows.every((row) => row.length + 2 <= width)) return rows.map((row) => `  ${row}`).join("\n");
  return commonFlags.flatMap((row) => row.map((flag) => `  ${flag}`)).join("\n");
}

const COLUMN = 14;

function groupText(group: Command["group"], width: number): string {
  const lines = commands
    .filter((command) => command.group === group)
    .map(({ name, summary }) => entry(name, summary, COLUMN, width));
  return `${group}:\n${lines.join("\n")}`;
}
