import { exitCodes as codes } from "../../src/cli/exit-codes.ts";
import { exitCodeMeanings } from "../../src/cli/help/exit-code-meanings.ts";
import { referencePage } from "../../src/cli/help/reference.ts";
import { builtinCommands } from "../../src/commands/list.ts";
import { code, type Page, page, sentence, table } from "./markdown.ts";

export const commandLine = (): Page => ({ path: "docs/reference/command-line.md", text: referencePage() });

export function exitCodes(): Page {
  const names = Object.keys(codes) as (keyof typeof codes)[];
  return page({
    name: "exit-codes",
    title: "Exit codes",
    from: ["src/cli/exit-codes.ts", "src/cli/help/exit-code-meanings.ts"],
    parts: [
      "Every command of `troupe` ends with one of these codes. They never change.",
      table(
        ["code", "name", "meaning"],
        names.map((name) => [String(codes[name]), name, sentence(exitCodeMeanings[name])]),
      ),
      "In prompt mode the last line of JSON output has the same code: [JSON output](json-output.md).",
    ],
  });
}

export function slashCommands(): Page {
  return page({
    name: "slash-commands",
    title: "Slash commands",
    from: ["src/commands"],
    parts: [
      'Type these in an interactive session, or pass them as a prompt: `troupe -p "/review"`. How to use them: ' +
        "[slash commands](../how-to/slash-commands.md).",
      table(
        ["command", "effect"],
        builtinCommands.map(({ name, argumentHint, summary }) => [
          code(`/${name}${argumentHint ? ` ${argumentHint}` : ""}`),
          sentence(summary),
        ]),
      ),
      "The terminal has more commands of its own: [the interactive terminal](../how-to/terminal.md).",
    ],
  });
}
