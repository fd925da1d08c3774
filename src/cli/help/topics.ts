import { flagDefinitions, flagNames } from "../../protocol/flags.ts";
import { exitCodes } from "../exit-codes.ts";
import { type Option, options } from "../options.ts";
import { environmentText } from "./environment.ts";
import { exitCodeMeanings } from "./exit-code-meanings.ts";
import { entry, flagTerm } from "./lines.ts";
import agents from "./topics/agents.md";
import environment from "./topics/environment.md";
import exitCodesIntroduction from "./topics/exit-codes.md";
import features from "./topics/features.md";
import json from "./topics/json.md";
import keys from "./topics/keys.md";
import models from "./topics/models.md";
import permissions from "./topics/permissions.md";
import sandbox from "./topics/sandbox.md";
import sessions from "./topics/sessions.md";

interface Topic {
  readonly name: string;
  readonly summary: string;
  text(): Promise<string>;
}

/** The texts of `troupe help <topic>`. For a name that is also a command, the command's own help comes first. */
export const topics: readonly Topic[] = [
  topic("flags", "every flag of a prompt and of a server", async () => sessionFlags()),
  topic("models", "how a model is chosen, and how to set one up", async () => models),
  topic("permissions", "what agents may do, and the grammar of rules", async () => permissions),
  topic("sandbox", "how commands are confined", async () => sandbox),
  topic("agents", "main agent, subagents and their worktrees", async () => agents),
  topic("sessions", "how sessions are stored, named and resumed", async () => sessions),
  topic("keys", "the keys of the interactive session", keysText),
  topic("environment", "the variables that troupe reads", async () => `${environment}\n${environmentText()}`),
  topic("exit-codes", "what the exit codes mean", async () => `${exitCodesIntroduction}\n${exitCodeText()}`),
  topic("json", "which commands print JSON, and how", async () => json),
  topic("features", "optional features and their defaults", async () => `${features}\n${featuresText()}`),
];

function topic(name: string, summary: string, text: () => Promise<string>): Topic {
  return { name, summary, text };
}

const FLAG_COLUMN = 34;

/** Returns the flags that are not limited to commands, by group. */
function sessionFlags(): string {
  const taken = options.filter(({ group }) => group !== "Commands");
  const groups = [...new Set(taken.map(({ group }) => group))];
  const text = groups.map((group) => {
    const lines = taken.filter((option) => option.group === group).map(flagLine);
    return `${group}:\n${lines.join("\n")}`;
  });
  return `${text.join("\n\n")}\n`;
}

const flagLine = (option: Option): string => entry(flagTerm(option), option.help, FLAG_COLUMN);

async function keysText(): Promise<string> {
  const { keyTable } = await import("../../terminal/input/key-table.ts");
  const rows = keyTable.map(({ keys: names, help }) => `| ${names.join(", ")} | ${help} |`);
  return `${keys}\n| key | effect |\n| --- | --- |\n${rows.join("\n")}\n`;
}

function exitCodeText(): string {
  const rows = Object.entries(exitCodes).map(
    ([name, code]) => `| ${code} | ${exitCodeMeanings[name as keyof typeof exitCodes]} |`,
  );
  return `| code | meaning |\n| --- | --- |\n${rows.join("\n")}\n`;
}

function featuresText(): string {
  return `${flagNames.map((name) => `  ${name.padEnd(33)} ${flagDefinitions[name].gates} (${flagDefinitions[name].default})`).join("\n")}\n`;
}
