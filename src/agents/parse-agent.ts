/** Parses a Markdown file or an object into a definition, or reports the problem and its line. */
import { defined } from "../lib/defined.ts";
import { type Frontmatter, parseFrontmatter } from "../lib/frontmatter.ts";
import { isObject } from "../lib/json.ts";
import { clip, sanitise } from "../lib/text.ts";
import { type AgentDefinition, MAX_AGENT_BYTES, MAX_DESCRIPTION_CHARACTERS, promptParts } from "./agent.ts";
import { type AgentFields, checkFields, splitList } from "./fields.ts";
import { nameProblem } from "./names.ts";
import { readToolList } from "./tool-names.ts";

/** The origin of a definition. */
export interface AgentOrigin extends Pick<AgentDefinition, "source" | "path" | "pluginName"> {
  /** The file name without its extension. */
  readonly id: string;
  /** A faster frontmatter parser, if the caller has one. */
  readonly read?: (text: string) => Promise<Frontmatter>;
}

export type ParsedAgent =
  | { readonly ok: true; readonly agent: AgentDefinition; readonly warnings: readonly AgentProblem[] }
  | ({ readonly ok: false } & AgentProblem);

interface AgentProblem {
  /** Line in the file, from 1. */
  readonly line: number;
  readonly message: string;
}

/** Never throws: an invalid text is returned as a problem. */
export async function parseAgent(markdown: string, origin: AgentOrigin): Promise<ParsedAgent> {
  if (markdown.length > MAX_AGENT_BYTES) {
    return { ok: false, line: 1, message: `it is larger than ${MAX_AGENT_BYTES / 1024} KiB` };
  }
  const { data, body, problem } = await (origin.read ?? parseFrontmatter)(markdown);
  if (problem) return { ok: false, ...problem };
  const lineOf = (key: string | undefined): number => lineOfKey(markdown, key);
  const checked = checkFields(data);
  if (!checked.ok) return { ok: false, line: lineOf(checked.key), message: checked.message };
  const { fields, unknown, empty } = checked;
  if (fields.prompt !== undefined) {
    return {
      ok: false,
      line: lineOf("prompt"),
      message: "prompt: write the prompt below the second ---, not as a field",
    };
  }
  const warnings = [...unknown, ...empty].map((key) => ({
    line: lineOf(key),
    message: unknown.includes(key) ? `${clip(sanitise(key), 60)} is not a field of an agent` : `${key} has no value`,
  }));
  const isBare = fields.tools === null;
  if (isBare) warnings.push({ line: lineOf("tools"), message: "tools has no value: the agent has none" });
  const made = definitionOf(
    { ...fields, ...(isBare && { tools: [] }), prompt: body },
    origin,
    (key, message) => void warnings.push({ line: lineOf(key), message }),
  );
  if (!made.ok) return { ok: false, line: lineOf(made.key), message: made.message };
  if (made.agent.description === "") {
    return { ok: false, line: 1, message: "it has no description: say what it is for, and when to use it" };
  }
  if (made.agent.description.startsWith(UNFILLED)) {
    const message = "description is still that of the template: models choose the agent by it";
    warnings.push({ line: lineOf("description"), message });
  }
  return { ok: true, agent: made.agent, warnings };
}

/** The description in a file of `troupe agents new`. */
const UNFILLED = "Say what this agent is for";

/** Parses an object that a program or server sent; `tools: null` means all tools. Never throws. */
export function agentFromObject(value: unknown, origin: Omit<AgentOrigin, "read" | "id">): ParsedAgent {
  const refused = (message: string): ParsedAgent => ({ ok: false, line: 1, message });
  if (!isObject(value)) return refused("it is not an object with name and prompt");
  const checked = checkFields(value);
  if (!checked.ok) return refused(checked.message);
  const { name, prompt = "" } = checked.fields;
  if (name === undefined || name.trim() === "") return refused("name is missing");
  const label = clip(sanitise(name), 80);
  if (prompt.trim() === "") return refused(`${label}: prompt is missing`);
  if (prompt.length > MAX_AGENT_BYTES) return refused(`${label}: prompt is larger than ${MAX_AGENT_BYTES / 1024} KiB`);
  const warnings = checked.unknown.map((key) => ({
    line: 1,
    message: `${label}: ${clip(sanitise(key), 60)} is not a field of an agent`,
  }));
  const note: Note = (_key, message) => void warnings.push({ line: 1, message: `${label}: ${message}` });
  const made = definitionOf(checked.fields, { ...origin, id: name.trim() }, note);
  return made.ok ? { ok: true, agent: made.agent, warnings } : refused(`${label}: ${made.message}`);
}

type Note = (key: string, message: string) => void;
type Made =
  | { readonly ok: true; readonly agent: AgentDefinition }
  | { readonly ok: false; readonly key: string; readonly message: string };

function definitionOf(fields: AgentFields, origin: AgentOrigin, note: Note): Made {
  const name = fields.name?.trim() || origin.id;
  for (const one of [name, origin.id]) {
    const problem = nameProblem(one);
    if (problem)
      return {
        ok: false,
        key: "name",
        message: `the name ${JSON.stringify(clip(one, 80))} cannot be used: ${problem}`,
      };
  }
  const prompt = (fields.prompt ?? "").trim();
  if (prompt === "") return { ok: false, key: "", message: "it is empty: write what the agent should do" };
  const description = oneLine(fields.description ?? "");
  if (description.length > MAX_DESCRIPTION_CHARACTERS) {
    note("description", `description is cut at ${MAX_DESCRIPTION_CHARACTERS} characters`);
  }
  return {
    ok: true,
    agent: {
      id: origin.id,
      name,
      displayName: clip(oneLine(fields.displayName ?? ""), MAX_DISPLAY_CHARACTERS) || name,
      description: clip(description, MAX_DESCRIPTION_CHARACTERS),
      prompt,
      ...powersOf(fields, origin, note),
      models: modelsOf(fields),
      modelPolicy: fields.modelPolicy ?? "preferred",
      ...(fields.reasoningEffort !== undefined && { reasoningEffort: fields.reasoningEffort.toLowerCase() }),
      skills: splitList(fields.skills ?? []),
      // A sidekick starts automatically and cannot be selected.
      userInvocable: (fields.userInvocable ?? true) && !fields.sidekick,
      infer: (fields.infer ?? true) && !fields.disableModelInvocation && !fields.sidekick,
      includeCustomInstructions: fields.includeCustomInstructions ?? false,
      promptParts: fields.promptParts ?? promptParts,
      ...defined({ limits: fields.limits }),
      ...(fields.isolation === "worktree" && { isolation: fields.isolation }),
      ...defined({
        placement: fields.placement,
        outputSchema: fields.outputSchema,
        github: fields.github,
        sidekick: fields.sidekick,
      }),
      source: origin.source,
      ...defined({ path: origin.path, pluginName: origin.pluginName }),
    },
  };
}

const MAX_DISPLAY_CHARACTERS = 100;

function powersOf(
  fields: AgentFields,
  { source }: AgentOrigin,
  note: Note,
): Pick<AgentDefinition, "tools" | "disallowedTools" | "readOnly" | "mcpServers"> {
  const writtenIn = source === "program" ? "program" : "file";
  const given = fields.tools == null ? { tools: null, problems: [] } : readToolList(fields.tools, writtenIn);
  for (const problem of given.problems) note("tools", `tools: ${problem}`);
  const denied = readToolList(fields.disallowedTools ?? [], writtenIn);
  for (const problem of denied.problems) note("disallowedTools", `disallowed-tools: ${problem}`);
  return {
    tools: given.tools,
    disallowedTools: denied.tools ?? ["*"],
    readOnly: fields.readOnly ?? false,
    ...defined({ mcpServers: fields.mcpServers }),
  };
}

/** `inherit` is another product's value for "no model of its own". */
function modelsOf({ models, model }: AgentFields): readonly string[] {
  const listed = splitList(models ?? []);
  const single = model?.trim() ?? "";
  const all = listed.length > 0 ? listed : single === "" ? [] : [single];
  return all.filter((one) => one.toLowerCase() !== "inherit");
}

function oneLine(text: string): string {
  return sanitise(text).replace(/\s+/g, " ").trim();
}

/** Returns the line of a frontmatter key, or 1 if the key is not found. */
function lineOfKey(markdown: string, key: string | undefined): number {
  if (!key) return 1;
  const keys = markdown.split(/\r?\n/).map((line) => /^["']?([A-Za-z][\w-]*)["']?[ \t]*:/.exec(line)?.[1]);
  const at = keys.indexOf(key);
  return Math.max(at >= 0 ? at : keys.findIndex((one) => one !== undefined && plain(one) === plain(key)), 0) + 1;
}

const plain = (key: string): string => key.replace(/[-_]/g, "").toLowerCase();
