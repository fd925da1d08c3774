import { resolve } from "node:path";
import type { ToolCall, ToolCallContent, ToolCallLocation, ToolCallUpdate, ToolKind } from "@agentclientprotocol/sdk";
import { isObject } from "../lib/json.ts";
import { clip, sanitiseLine } from "../lib/text.ts";
import type { EventData } from "../protocol/event.ts";
import { fencedContent, textContent } from "./content.ts";
import { fileChanges } from "./diff-content.ts";

export interface CallContext {
  readonly cwd: string;
  /** The editor draws terminals from `_meta`. */
  readonly terminalOutput: boolean;
}

/** A running call. */
export interface RunningCall {
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The last part of the output so far. */
  output: string;
}

const KINDS: Readonly<Record<string, ToolKind>> = {
  view: "read",
  glob: "search",
  grep: "search",
  create: "edit",
  edit: "edit",
  apply_patch: "edit",
  bash: "execute",
  read_bash: "execute",
  stop_bash: "execute",
  web_fetch: "fetch",
  web_search: "fetch",
  task: "think",
  update_todo: "think",
  exit_plan_mode: "switch_mode",
};
const TITLES: Readonly<Record<string, string>> = {
  update_todo: "Update the plan",
  exit_plan_mode: "Propose the plan",
};
/** Tools whose results are Markdown of agents, not program output. */
const SPEAKING: ReadonlySet<string> = new Set(["task", "read_agent"]);
const MAX_TITLE_CHARACTERS = 300;
const MAX_LIVE_CHARACTERS = 16_000;

export function openCall({ toolName, arguments: input }: EventData<"tool.execution_start">): RunningCall {
  return { toolName, input: isObject(input) ? input : {}, output: "" };
}

export function startedCall(id: string, call: RunningCall, context: CallContext): ToolCall {
  const { toolName, input } = call;
  const locations = locationsOf(call, context.cwd);
  const terminal = hasTerminal(call, context) && {
    content: [{ type: "terminal" as const, terminalId: id }],
    _meta: { terminal_info: { terminal_id: id, cwd: context.cwd } },
  };
  return {
    toolCallId: id,
    title: titleOf(call),
    name: toolName,
    kind: KINDS[toolName] ?? "other",
    status: "in_progress",
    rawInput: input,
    ...(locations.length > 0 && { locations }),
    ...terminal,
  };
}

/**
 * Returns the update for output of a running tool. Editors without terminals get its last part, which replaces the
 * previous content.
 */
export function printedCall(id: string, call: RunningCall, context: CallContext, output: string): ToolCallUpdate {
  call.output = `${call.output}${output}`.slice(-MAX_LIVE_CHARACTERS);
  if (hasTerminal(call, context))
    return { toolCallId: id, _meta: { terminal_output: { terminal_id: id, data: output } } };
  return { toolCallId: id, content: [fencedContent(call.output)] };
}

export function progressedCall(id: string, message: string): ToolCallUpdate {
  return { toolCallId: id, content: [textContent(message)] };
}

/** `call` is undefined if its start event was not received. */
export function endedCall(
  id: string,
  call: RunningCall | undefined,
  context: CallContext,
  { success, result, error }: EventData<"tool.execution_complete">,
): ToolCallUpdate {
  const status = success ? "completed" : "failed";
  const output = result?.content ?? error?.message ?? "";
  if (call && hasTerminal(call, context)) return endedTerminal({ toolCallId: id, status }, call, output);
  if (success && call && KINDS[call.toolName] === "edit" && result?.detailedContent !== undefined) {
    const { diffs, locations, isWhole } = fileChanges(result.detailedContent, context.cwd);
    const content = [
      ...diffs.map((diff) => ({ type: "diff" as const, ...diff })),
      ...(isWhole ? [] : [fencedContent(result.detailedContent)]),
    ];
    return { toolCallId: id, status, content, locations: [...locations] };
  }
  return { toolCallId: id, status, content: contentOf(output, call) };
}

function contentOf(output: string, call: RunningCall | undefined): ToolCallContent[] {
  if (output === "") return [];
  return [call && SPEAKING.has(call.toolName) ? textContent(output) : fencedContent(output)];
}

/** The terminal keeps the output that it received. A result without live output is sent whole. */
function endedTerminal(update: ToolCallUpdate, call: RunningCall, output: string): ToolCallUpdate {
  const { toolCallId: terminal_id } = update;
  const [, code] = /<exited with exit code (\d+)>\s*$/.exec(output) ?? [];
  const terminal_exit = { terminal_id, exit_code: code === undefined ? null : Number(code), signal: null };
  const isSilent = call.output === "" && output !== "";
  return {
    ...update,
    _meta: { ...(isSilent && { terminal_output: { terminal_id, data: output } }), terminal_exit },
  };
}

const hasTerminal = (call: RunningCall, context: CallContext): boolean =>
  context.terminalOutput && call.toolName === "bash";

function titleOf({ toolName, input }: RunningCall): string {
  const fixed = TITLES[toolName];
  if (fixed !== undefined) return fixed;
  const said = [input.path, input.command, input.pattern, input.url, input.question, input.description].find(
    (value): value is string => typeof value === "string" && value !== "",
  );
  return clip(sanitiseLine(said === undefined ? toolName : `${toolName} ${said}`), MAX_TITLE_CHARACTERS);
}

function locationsOf({ toolName, input }: RunningCall, cwd: string): ToolCallLocation[] {
  const kind = KINDS[toolName];
  if (typeof input.path !== "string" || input.path === "") return [];
  if (kind !== "read" && kind !== "edit" && kind !== "search") return [];
  const [line] = Array.isArray(input.view_range) ? input.view_range : [];
  const path = resolve(cwd, input.path);
  return [{ path, ...(Number.isInteger(line) && line > 0 && { line }) }];
}
