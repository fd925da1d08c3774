/**
 * Two spellings of one hook input. The camelCase dialect uses camelCase fields and a time in milliseconds. The
 * PascalCase dialect uses snake_case fields, an ISO time, the name of the point and Claude's names for tools.
 */
import type { Json } from "../lib/json.ts";
import { type Dialect, type HookInput, type HookPoint, pascalName } from "./points.ts";

export type Payload = Record<string, Json>;

export function payloadFor<P extends HookPoint>(
  point: P,
  input: HookInput<P>,
  { dialect, now }: { dialect: Dialect; now: number },
): Payload {
  const { sessionId, cwd, ...rest } = input;
  const fields = Object.entries(rest).filter((entry): entry is [string, Json] => entry[1] !== undefined);
  if (dialect === "camel") return { sessionId, timestamp: now, cwd, ...Object.fromEntries(fields) };
  return {
    hook_event_name: pascalName(point),
    session_id: sessionId,
    timestamp: new Date(now).toISOString(),
    cwd,
    ...Object.fromEntries(fields.map(([name, value]) => pascalField(name, value))),
  };
}

/** Encodes the tool arguments as a JSON string, as programs that read the camel dialect expect. */
export function asSent(payload: Payload): Payload {
  return payload.toolArgs === undefined ? payload : { ...payload, toolArgs: JSON.stringify(payload.toolArgs) };
}

function pascalField(name: string, value: Json): [string, Json] {
  if (name === "toolName" && typeof value === "string") return ["tool_name", claudeName(value)];
  if (name === "toolArgs") return ["tool_input", value];
  if (name === "toolResult" && typeof value === "object" && value !== null && !Array.isArray(value))
    return ["tool_result", Object.fromEntries(Object.entries(value).map(([key, inner]) => [snake(key), inner]))];
  return [snake(name), value];
}

const snake = (name: string): string =>
  name.startsWith("_") ? name : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const claudeNames: Readonly<Record<string, readonly string[]>> = {
  Bash: ["bash", "powershell"],
  Read: ["view"],
  Write: ["create"],
  Edit: ["edit", "str_replace_editor", "apply_patch"],
  Grep: ["grep", "rg"],
  Glob: ["glob"],
  WebFetch: ["web_fetch"],
  WebSearch: ["web_search"],
  AskUserQuestion: ["ask_user"],
  TodoWrite: ["update_todo"],
  Agent: ["task"],
};
const byToolName = new Map(
  Object.entries(claudeNames).flatMap(([claude, names]) => names.map((name) => [name, claude] as const)),
);

/** Returns Claude's name for a tool, or the name itself when Claude has no such tool. */
export function claudeName(toolName: string): string {
  return byToolName.get(toolName) ?? toolName;
}
