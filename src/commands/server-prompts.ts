/** Prompts of MCP servers, called like commands: `/mcp:<server>:<prompt> [arguments]`. */
import { wrapInTag } from "../lib/quoting.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { CommandResult } from "./command.ts";
import { clipLine, joinLines } from "./lines.ts";
import type { CommandPorts, ServerPrompt } from "./ports.ts";
import frame from "./server-prompt.md";

const FORM = /^\/mcp:([^\s:]+)(?::(\S*))?(?:\s+([\s\S]*))?$/i;

/** Returns the name to type, without the slash. */
export const promptCommandName = ({ server, name }: ServerPrompt): string =>
  `mcp:${server}:${name.trim().replace(/\s+/g, "-")}`;

/** Returns the arguments as they are shown: `<required> [optional]`; undefined without arguments. */
export function promptArgumentHint(prompt: ServerPrompt): string | undefined {
  const names = prompt.arguments.map(({ name, required }) =>
    required ? `<${clipLine(name, 40)}>` : `[${clipLine(name, 40)}]`,
  );
  return names.length === 0 ? undefined : names.join(" ");
}

/**
 * Runs text that calls a prompt of a server; without a prompt's name, lists the server's prompts. Returns undefined for
 * any other text, and for an unknown prompt if a program sent the text. Throws a `TroupeError` if a user named an
 * unknown prompt, or a required argument is missing.
 */
export async function runServerPrompt(
  text: string,
  { port, from }: { port: CommandPorts["serverPrompts"] | undefined; from: "user" | "program" },
): Promise<CommandResult | undefined> {
  const [, server, name = "", argumentText = ""] = FORM.exec(text.trim()) ?? [];
  if (server === undefined) return undefined;
  const prompts = await port?.of(server);
  const label = clipLine(server, 80);
  if (prompts && name === "") return { kind: "completed", text: promptLines(prompts) || `${label} has no prompts.` };
  const wanted = `mcp:${server}:${name}`.toLowerCase();
  const prompt = prompts?.find((one) => promptCommandName(one).toLowerCase() === wanted);
  if (!port || !prompt) {
    if (from === "program") return undefined;
    const hint = `${prompts ? `/mcp:${label} lists its prompts` : "/mcp lists the servers"}.`;
    const what = prompts ? `${label} has no prompt ${clipLine(name, 80)}` : `${label} is not used by this session`;
    throw new TroupeError("usage", `The MCP server ${what}.`, { hint });
  }
  const filled = await port.fill(prompt, valuesOf(prompt, argumentText.trim()));
  if (filled.trim() === "") throw new TroupeError("failed", `The prompt ${clipLine(prompt.name, 80)} is empty.`);
  const attributes = { server: prompt.server, name: prompt.name };
  return {
    kind: "prompt",
    prompt: wrapInTag("mcp_prompt", attributes, `${frame.trim()}\n\n${filled}`),
    displayPrompt: text.trim(),
  };
}

export function promptLines(prompts: readonly ServerPrompt[]): string {
  const line = (prompt: ServerPrompt): string => {
    const usage = [promptCommandName(prompt), promptArgumentHint(prompt)].filter(Boolean).join(" ");
    return `/${clipLine(usage, 160)}: ${clipLine(prompt.description) || "a prompt of an MCP server"}`;
  };
  return joinLines(prompts.map(line));
}

const NAMED = /^([^\s=]+)=([\s\S]*)$/;

/**
 * Assigns words to arguments: `name=value` by name, others in the listed order. Quotes keep words together. The last
 * argument takes all remaining words.
 */
function valuesOf(prompt: ServerPrompt, text: string): Record<string, string> {
  const values: Record<string, string> = {};
  const rest: string[] = [];
  for (const word of wordsOf(text)) {
    const [, name, value] = NAMED.exec(word) ?? [];
    const isNamed = name !== undefined && value !== undefined && prompt.arguments.some((one) => one.name === name);
    if (isNamed && !Object.hasOwn(values, name)) values[name] = value;
    else rest.push(word);
  }
  const open = prompt.arguments.filter(({ name }) => !Object.hasOwn(values, name));
  for (const [index, { name }] of open.entries()) {
    const isLast = index === open.length - 1;
    const words = rest.splice(0, isLast ? rest.length : 1);
    if (words.length > 0) values[name] = words.join(" ");
  }
  const missing = prompt.arguments.filter(({ name, required }) => required && !Object.hasOwn(values, name));
  const usage = `Use /${[promptCommandName(prompt), promptArgumentHint(prompt)].filter(Boolean).join(" ")}.`;
  if (missing.length > 0) {
    const names = missing.map(({ name }) => clipLine(name, 40)).join(", ");
    throw new TroupeError("usage", `The prompt ${clipLine(prompt.name, 80)} needs ${names}.`, { hint: usage });
  }
  if (rest.length > 0)
    throw new TroupeError("usage", `The prompt ${clipLine(prompt.name, 80)} takes no further arguments.`, {
      hint: usage,
    });
  return values;
}

/** Splits at white space outside of quotation marks; a mark that is not closed is a character. */
function wordsOf(text: string): string[] {
  const words = text.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? [];
  return words.map((word) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ""),
  );
}
