import { commands } from "../command-list.ts";
import { type Command, commandGroups } from "../table/command.ts";
import { entry, WIDTH, wrap } from "./lines.ts";
import { topics } from "./topics.ts";

/** Returns the text of `troupe --help`, which fits one screen. */
export function mainHelp(version: string): string {
  const topicNames = wrap(`Topics: ${topics.map(({ name }) => name).join(", ")}`, WIDTH);
  return `troupe ${version} – a coding agent for the terminal, on any model or none

  troupe                        open an interactive session
  troupe -p "<prompt>"          run one prompt; the answer goes to stdout
  git diff | troupe -p "Review" add piped input to the prompt
  troupe -p "Go on" --continue  continue the last session of this folder

${commandGroups.map(groupText).join("\n")}

Common flags:
  -p, --prompt <text>   --model <model>      --continue           --json
  -C, --cd <folder>     --allow-tool <rule>  --resume <id|name>   --headless
  -s, --silent          --deny-tool <rule>   --max-cost <usd>     --acp

Help:
  troupe <command> --help, troupe help <command>, troupe help <topic>
${topicNames.map((row) => `  ${row}`).join("\n")}
`;
}

const COLUMN = 14;

function groupText(group: Command["group"]): string {
  const lines = commands
    .filter((command) => command.group === group)
    .map(({ name, summary }) => entry(name, summary, COLUMN));
  return `${group}:\n${lines.join("\n")}`;
}
