import { exitCodes as codes, exitCodeTexts } from "../../src/cli/exit-codes.ts";
import { helpText } from "../../src/cli/help.ts";
import { options } from "../../src/cli/options.ts";
import { builtinCommands } from "../../src/commands/list.ts";
import { block, code, type Page, page, sentence, table } from "./markdown.ts";

export function commandLine(): Page {
  const [, usage = ""] = /^Usage:\n([\s\S]*?)\n\n/m.exec(helpText("")) ?? [];
  const groups = [...new Set(options.map(({ group }) => group))];
  return page({
    name: "command-line",
    title: "Command line",
    from: ["src/cli/help.ts", "src/cli/options.ts"],
    parts: [
      "`troupe --help` prints this page's content. Exit codes: [exit codes](exit-codes.md).",
      "## Commands",
      block("text", usage.replaceAll(/^ {2}/gm, "")),
      ...groups.flatMap((group) => [`## ${group}`, flagsOf(group)]),
    ],
  });
}

function flagsOf(group: string): string {
  const rows = options
    .filter((option) => option.group === group)
    .map(({ name, short, value, multiple, help }) => [
      [`--${name}${value ? ` <${value}>` : ""}`, ...(short ? [`-${short}`] : [])].map(code).join(", "),
      sentence(help) + (multiple ? " Can be repeated." : ""),
    ]);
  return table(["flag", "effect"], rows);
}

export function exitCodes(): Page {
  const names = Object.keys(codes) as (keyof typeof codes)[];
  return page({
    name: "exit-codes",
    title: "Exit codes",
    from: ["src/cli/exit-codes.ts"],
    parts: [
      "Every command of `troupe` ends with one of these codes. They never change.",
      table(
        ["code", "name", "meaning"],
        names.map((name) => [String(codes[name]), name, exitCodeTexts[name]]),
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
