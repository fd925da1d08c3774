import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Tool } from "../tools/tool.ts";

/** Which tools a session is offered. Hiding a tool and allowing what it does are two different things. */
export interface ToolChoice {
  /** Only these; all when absent. */
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
  /** Denied by rule: a tool's name, or the kind of what it does. Beats every allow. */
  readonly denied?: readonly string[];
}

/** Kinds that nothing in this release can do; a rule about them is accepted and holds. */
const KINDS_WITHOUT_TOOLS = ["shell", "write", "url", "mcp", "memory", "custom-tool"];
/** What the tools of this release do. */
const KIND_OF_ALL = "read";

export function chooseTools(tools: readonly Tool[], choice: ToolChoice = {}): readonly Tool[] {
  const { available = [], excluded = [], denied = [] } = choice;
  const names = tools.map(({ name }) => name);
  for (const name of [...available, ...excluded]) requireKnown(name, names);
  const refused = new Set(denied.flatMap((rule) => refusedBy(rule, names)));
  return tools.filter(
    ({ name }) =>
      (available.length === 0 || available.includes(name)) && !excluded.includes(name) && !refused.has(name),
  );
}

/** A rule that cannot be held must not be accepted: better no start than a promise nobody keeps. */
function refusedBy(rule: string, names: readonly string[]): readonly string[] {
  if (names.includes(rule)) return [rule];
  if (rule === KIND_OF_ALL) return names;
  const kind = rule.split("(", 1)[0] ?? "";
  if (KINDS_WITHOUT_TOOLS.includes(kind)) return [];
  const known = [...names, KIND_OF_ALL, ...KINDS_WITHOUT_TOOLS];
  if (rule.startsWith(`${KIND_OF_ALL}(`)) {
    throw new TroupeError("usage", `--deny-tool ${rule}: rules for single paths are not supported yet.`, {
      hint: `Deny all reading with --deny-tool ${KIND_OF_ALL}, or a tool by its name: ${names.join(", ")}.`,
    });
  }
  throw unknown("--deny-tool", rule, known);
}

function requireKnown(name: string, names: readonly string[]): void {
  if (!names.includes(name)) throw unknown("A tool list", name, names);
}

function unknown(where: string, name: string, known: readonly string[]): TroupeError {
  const close = nearest(name, known);
  return new TroupeError("usage", `${where} names "${name}", which does not exist.`, {
    hint: `${close ? `Did you mean "${close}"? ` : ""}Known: ${known.join(", ")}.`,
  });
}
