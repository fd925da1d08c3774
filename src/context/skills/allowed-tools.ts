/** `allowed-tools` of a skill: the tools that need no approval once the skill is in use. */
import { clip } from "../../lib/text.ts";
import type { Skill, SkillNotice } from "./skill.ts";

const MAX_TOOLS = 50;
const MAX_CHARACTERS = 200;

/** Maps tool names of other programs to our rule kinds. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  Bash: "shell",
  Read: "read",
  Grep: "read",
  Glob: "read",
  LS: "read",
  Edit: "write",
  MultiEdit: "write",
  Write: "write",
  WebFetch: "url",
};

/** Splits a list, or a text with commas or spaces. Does not split within parentheses. */
export function splitAllowedTools(value: unknown): { tools: readonly string[]; problem?: string } {
  if (value === undefined || value === null) return { tools: [] };
  const texts = Array.isArray(value) ? value : typeof value === "string" ? splitText(value) : undefined;
  if (texts === undefined) return { tools: [], problem: "it must be a list of tools, or text with commas between." };
  const tools = texts.flatMap((text: unknown) => (typeof text === "string" && text.trim() !== "" ? [text.trim()] : []));
  const fitting = tools.filter((tool) => tool.length <= MAX_CHARACTERS).slice(0, MAX_TOOLS);
  if (fitting.length === tools.length) return { tools: fitting };
  return { tools: fitting, problem: `only ${MAX_TOOLS} entries of ${MAX_CHARACTERS} characters each are used.` };
}

/**
 * Returns the permission rules to add for the rest of the session once the skill is used. `problemOf` returns why a
 * rule is invalid. Invalid rules are skipped with a notice. A workspace skill gets no rules.
 */
export function allowedToolRules(
  skill: Pick<Skill, "name" | "path" | "scope" | "allowedTools">,
  problemOf: (rule: string) => string | undefined,
): { rules: readonly string[]; notices: readonly SkillNotice[] } {
  if (skill.scope === "workspace") return { rules: [], notices: [] };
  const rules: string[] = [];
  const notices: SkillNotice[] = [];
  for (const entry of skill.allowedTools ?? []) {
    const rule = ruleOf(entry);
    const problem = entry === "*" ? "it would allow everything" : problemOf(rule);
    if (problem === undefined) rules.push(rule);
    else {
      const message = `The skill ${skill.name} allows ${JSON.stringify(clip(entry, 80))}, which is not used: ${problem}`;
      notices.push({ kind: "tools", path: skill.path, message });
    }
  }
  return { rules: [...new Set(rules)], notices };
}

/** `Bash(git status:*)` becomes `shell(git status:*)`. Unknown names stay unchanged. */
function ruleOf(entry: string): string {
  const [, name = entry, argument] = /^([^()]+?)\s*(?:\((.*)\))?$/s.exec(entry) ?? [];
  const kind = Object.hasOwn(OTHER_NAMES, name) ? OTHER_NAMES[name] : undefined;
  if (kind === undefined) return entry;
  if (argument === undefined || argument === "*") return kind;
  return `${kind}(${kind === "url" ? argument.replace(/^domain:/, "") : argument})`;
}

function splitText(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const character of text) {
    if (character === "(") depth++;
    else if (character === ")") depth = Math.max(0, depth - 1);
    if (depth === 0 && /[\s,]/.test(character)) {
      parts.push(part);
      part = "";
    } else part += character;
  }
  return [...parts, part];
}
