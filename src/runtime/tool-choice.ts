import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Tool } from "../tools/tool.ts";

/** Which tools a session is offered. Hiding a tool and allowing what it does are two different things. */
export interface ToolChoice {
  /** Only these; all when absent. */
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
}

export function chooseTools(tools: readonly Tool[], choice: ToolChoice = {}): readonly Tool[] {
  const { available = [], excluded = [] } = choice;
  const names = tools.map(({ name }) => name);
  for (const name of [...available, ...excluded]) requireKnown(name, names);
  return tools.filter(({ name }) => (available.length === 0 || available.includes(name)) && !excluded.includes(name));
}

function requireKnown(name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  const close = nearest(name, names);
  throw new TroupeError("usage", `A tool list names "${name}", which does not exist.`, {
    hint: `${close ? `Did you mean "${close}"? ` : ""}Known: ${names.join(", ")}.`,
  });
}
