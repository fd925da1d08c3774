/** A tool call in one line: its name and the argument that tells most. */
import { isObject } from "../lib/json.ts";
import { clip } from "./own-text.ts";

const MAX_TITLE_CHARACTERS = 300;
const MAX_PATH_CHARACTERS = 70;
const MAX_ARGUMENT_CHARACTERS = 4_000;
/** Their arguments are what a person is asked, and are needed whole. */
const ASKING: ReadonlySet<string> = new Set(["ask_user", "exit_plan_mode"]);
const MAX_ASKED_CHARACTERS = 64_000;
const TELLING: readonly string[] = ["path", "pattern", "command", "url", "question"];

export function toolTitle(name: string, given: unknown): string {
  const told = name === "task" ? taskText(given) : name === "subagents_run" ? workersText(given) : argumentText(given);
  return clip(`${name} ${told}`.trim(), MAX_TITLE_CHARACTERS);
}

/** `ann (explore): look at the parser`. */
function taskText(given: unknown): string {
  if (typeof given !== "object" || given === null) return "";
  const { name, agent_type: type, description } = given as Readonly<Record<string, unknown>>;
  const who = typeof name === "string" ? `${name}${typeof type === "string" ? ` (${type})` : ""}` : type;
  const told = [who, description].filter((part) => typeof part === "string" && part !== "");
  return told.length > 0 ? told.join(": ") : argumentText(given);
}

/** `scout-1 (scout), review-1 (review)`. */
function workersText(given: unknown): string {
  const agents: unknown = isObject(given) ? given.agents : undefined;
  if (!Array.isArray(agents)) return argumentText(given);
  return agents.flatMap((one) => (isObject(one) ? `${String(one.id)} (${String(one.role)})` : [])).join(", ");
}

/** The arguments as JSON, bounded. */
export function argumentsText(name: string, given: unknown): string {
  const most = ASKING.has(name) ? MAX_ASKED_CHARACTERS : MAX_ARGUMENT_CHARACTERS;
  return given === undefined ? "" : clip(JSON.stringify(given) ?? "", most);
}

function argumentText(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  const fields = Object.entries(value);
  const main = fields.find(([key]) => TELLING.includes(key)) ?? fields[0];
  if (main === undefined) return "";
  if (typeof main[1] !== "string") return JSON.stringify(main[1]) ?? "";
  return main[0] === "path" ? `${pathText(main[1])}${rangeText(Object.fromEntries(fields).view_range)}` : main[1];
}

/** Long paths differ at their ends, so the beginning is cut. */
function pathText(path: string): string {
  if (path.length <= MAX_PATH_CHARACTERS) return path;
  const end = path.slice(1 - MAX_PATH_CHARACTERS);
  const slash = end.indexOf("/");
  return `…${slash < 0 ? end : end.slice(slash)}`;
}

function rangeText(range: unknown): string {
  if (!Array.isArray(range) || !range.every((line) => typeof line === "number")) return "";
  return `:${range[0]}-${range[1] === -1 ? "end" : range[1]}`;
}
