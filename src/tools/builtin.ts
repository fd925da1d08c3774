import { defined } from "../lib/defined.ts";
import { listAgents } from "./agents/list-agents.ts";
import { readAgent } from "./agents/read-agent.ts";
import { stopAgent } from "./agents/stop-agent.ts";
import { subagentsRead } from "./agents/subagents-read.ts";
import { type CoordinationSettings, subagentsRunTool } from "./agents/subagents-run.ts";
import { type AgentChoices, taskTool } from "./agents/task.ts";
import { taskComplete } from "./agents/task-complete.ts";
import { writeAgent } from "./agents/write-agent.ts";
import { sql } from "./database/sql.ts";
import { applyPatch } from "./files/apply-patch.ts";
import { create } from "./files/create.ts";
import { edit } from "./files/edit.ts";
import { glob } from "./files/glob.ts";
import { grep } from "./files/grep.ts";
import { view } from "./files/view.ts";
import { contextBoard } from "./memory/context-board.ts";
import type { InboxSender } from "./memory/inbox.ts";
import { readInbox } from "./memory/read-inbox.ts";
import { sendInboxTool } from "./memory/send-inbox.ts";
import { type MemoryPort, storeMemoryTool } from "./memory/store-memory.ts";
import { voteMemoryTool } from "./memory/vote-memory.ts";
import { bash } from "./shell/bash.ts";
import { listBash } from "./shell/list-bash.ts";
import { readBash } from "./shell/read-bash.ts";
import { stopBash } from "./shell/stop-bash.ts";
import { writeBash } from "./shell/write-bash.ts";
import { type SkillSource, skillTool } from "./skill.ts";
import { type Tool, type ToolMaker, type ToolTraits, toolMaker } from "./tool.ts";
import { askUser } from "./user/ask-user.ts";
import { askUserForm } from "./user/ask-user-form.ts";
import { exitPlanMode } from "./user/exit-plan-mode.ts";
import { updateTodo } from "./user/update-todo.ts";
import { webFetch } from "./web/web-fetch.ts";
import { webSearch } from "./web/web-search.ts";

/** Offered in every session. To add a tool, see AGENTS.md. */
export const builtinTools: readonly Tool[] = [
  view,
  glob,
  grep,
  create,
  edit,
  applyPatch,
  bash,
  readBash,
  writeBash,
  stopBash,
  listBash,
  webFetch,
  sql,
  updateTodo,
];

/** Offered when the session can search the web. */
export const searchTools: readonly Tool[] = [webSearch];

/** Offered in autopilot mode, while the agent works alone until the task is done. */
export const autopilotTools: readonly Tool[] = [taskComplete];

/** Offered when a client can answer. */
export const interactiveTools: readonly Tool[] = [askUser, exitPlanMode];
/** The same for clients that show forms. */
export const formTools: readonly Tool[] = [askUserForm, exitPlanMode];

/** Offered when there are skills. */
export const skillTools: readonly ToolMaker<SkillSource>[] = [skillTool];

/** Offered to the main agent when there is a memory. */
export const memoryTools: readonly ToolMaker<MemoryPort>[] = [storeMemoryTool];

/** Offered with them when that memory accepts votes. */
export const memoryVoteTools: readonly ToolMaker<MemoryPort>[] = [voteMemoryTool];

/** Offered to agents that list it, when there is a context board. */
export const boardTools: readonly Tool[] = [contextBoard];

/** Offered when agents may be started; rebuilt when the list of agents changes. */
export const agentTools: readonly ToolMaker<AgentChoices>[] = [
  taskTool,
  ...[readAgent, writeAgent, listAgents, stopAgent].map(asMade),
];

/** Offered when workers can be coordinated. */
export const coordinationTools: readonly ToolMaker<CoordinationSettings>[] = [subagentsRunTool, asMade(subagentsRead)];

/** Offered to the main agent when sidekicks may write to it. */
export const inboxTools: readonly Tool[] = [readInbox];

/** Offered to sidekicks only. */
export const sidekickOnlyTools: readonly ((inbox: InboxSender) => Tool)[] = [sendInboxTool];

/** Built-in tools that a session may lack, although a tool list may name them. */
const optionalTools: readonly ToolTraits[] = [
  ...[...searchTools, ...autopilotTools, ...interactiveTools, ...boardTools, ...inboxTools],
  ...[...skillTools, ...memoryTools, ...memoryVoteTools, ...agentTools, ...coordinationTools].map(
    ({ traits }) => traits,
  ),
];

export const optionalToolNames: readonly string[] = [
  ...optionalTools.map(({ name }) => name),
  ...["tool_search_tool_regex", "list_mcp_resources", "read_mcp_resource"],
];

const traits: readonly Partial<Tool>[] = [...builtinTools, ...optionalTools];

/** Returns the traits of a built-in tool for a client's tool that takes its place, or none. */
export function traitsFor(name: string): Omit<ToolTraits, "name"> {
  const { needs, readOnly, ...tool } = traits.find((tool) => tool.name === name) ?? {};
  const { accessKind, mainOnly, managesAgents, companionOf, modes } = tool;
  const { forReadOnlyAgents = needs ? undefined : readOnly } = tool;
  return defined({ accessKind, forReadOnlyAgents, mainOnly, managesAgents, companionOf, modes });
}

/** The kind of access of each tool that has one. */
export const accessKinds: Readonly<Record<string, NonNullable<ToolTraits["accessKind"]>>> = Object.fromEntries(
  [...builtinTools, ...optionalTools].flatMap(({ name, accessKind }) => (accessKind ? [[name, accessKind]] : [])),
);

function asMade(tool: Tool): ToolMaker<unknown> {
  return toolMaker(tool, () => tool);
}
