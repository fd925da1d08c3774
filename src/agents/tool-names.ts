/** Parses the `tools` field of a definition. Translates tool names of other products into built-in names. */
import { clip } from "../lib/text.ts";

const MAX_TOOLS = 200;
const MAX_TOOL_CHARACTERS = 128;

/** Tool groups and tool names of other products, in lower case. */
const otherNames: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    read: ["view"],
    notebookread: ["view"],
    ls: ["view"],
    search: ["grep", "glob"],
    rg: ["grep"],
    write: ["create"],
    multiedit: ["edit"],
    notebookedit: ["edit"],
    str_replace_editor: ["edit"],
    execute: ["bash"],
    shell: ["bash"],
    powershell: ["bash"],
    bashoutput: ["read_bash"],
    killshell: ["stop_bash"],
    killbash: ["stop_bash"],
    agent: ["task"],
    "custom-agent": ["task"],
    web: ["web_fetch", "web_search"],
    webfetch: ["web_fetch"],
    fetch: ["web_fetch"],
    websearch: ["web_search"],
    todo: ["update_todo"],
    todowrite: ["update_todo"],
    askuserquestion: ["ask_user"],
    exitplanmode: ["exit_plan_mode"],
  }),
);

export interface ToolList {
  /** Null: all tools. */
  readonly tools: readonly string[] | null;
  readonly problems: readonly string[];
}

/**
 * Parses a list or a comma-separated text. In a file, `edit` grants every tool that changes files, as in the products
 * such files are written for. In an object sent by a program, `edit` is only the tool of that name.
 */
export function readToolList(value: readonly string[] | string, writtenIn: "file" | "program"): ToolList {
  const entries = (typeof value === "string" ? splitText(value) : value).map((entry) => entry.trim()).filter(Boolean);
  if (entries.includes("*")) return { tools: null, problems: [] };
  const problems: string[] = [];
  const tools = entries.slice(0, MAX_TOOLS).flatMap((entry) => {
    if (entry.length <= MAX_TOOL_CHARACTERS && !entry.includes("(")) return ourNames(entry, writtenIn);
    const why = entry.includes("(") ? "a tool cannot be given in part; use permission rules instead" : "it is too long";
    problems.push(`${JSON.stringify(clip(entry, 60))} is left out: ${why}`);
    return [];
  });
  if (entries.length > MAX_TOOLS) problems.push(`only the first ${MAX_TOOLS} tools are used`);
  return { tools: [...new Set(tools)], problems };
}

/**
 * Returns the built-in names for an entry. A tool of an MCP server is `<server>-<tool>`; `server/tool` and
 * `mcp__server__tool` are also accepted.
 */
function ourNames(entry: string, writtenIn: "file" | "program"): readonly string[] {
  const known = otherNames.get(entry.toLowerCase());
  if (known) return known;
  if (entry === "Edit" || entry === "Task" || /^(?:View|Bash|Grep|Glob|Create)$/.test(entry))
    return [entry.toLowerCase()];
  if (entry === "edit" && writtenIn === "file") return ["edit", "create", "apply_patch"];
  const ofServer = /^mcp__(.+?)(?:__(.+))?$/.exec(entry) ?? /^([^/]+)\/(.+)$/.exec(entry);
  return ofServer ? [`${spelled(ofServer[1] ?? "")}-${spelled(ofServer[2] ?? "*")}`] : [entry];
}

const spelled = (part: string): string => part.replace(/[^A-Za-z0-9_*-]/g, "_");

/** Splits at commas outside parentheses. */
const splitText = (text: string): string[] => text.match(/(?:\([^)]*\)|[^,(])+/g) ?? [];
