import { listAgents } from "./agents/list-agents.ts";
import { readAgent } from "./agents/read-agent.ts";
import { stopAgent } from "./agents/stop-agent.ts";
import { subagentsRead } from "./agents/subagents-read.ts";
import { type CoordinationSettings, subagentsRunTool } from "./agents/subagents-run.ts";
import { submitResultTool } from "./agents/submit-result.ts";
import { type AgentChoices, taskTool } from "./agents/task.ts";
import { taskComplete } from "./agents/task-complete.ts";
import { taskList } from "./agents/task-list.ts";
import { writeAgent } from "./agents/write-agent.ts";
import { sql } from "./database/sql.ts";
import { environmentDetectTool } from "./environment-detect.ts";
import { applyPatch } from "./files/apply-patch.ts";
import { create } from "./files/create.ts";
import { edit } from "./files/edit.ts";
import { glob } from "./files/glob.ts";
import { grep } from "./files/grep.ts";
import { view } from "./files/view.ts";
import { contextBoard } from "./memory/context-board.ts";
import type { InboxSender } from "./memory/inbox.ts";
import { memoryRead } from "./memory/memory-read.ts";
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
import type { Environments } from "./subagents/environment.ts";
import type { ResultReceiver } from "./subagents/result-receiver.ts";
import type { Tool } from "./tool.ts";
import { askUser } from "./user/ask-user.ts";
import { askUserForm } from "./user/ask-user-form.ts";
import { exitPlanMode } from "./user/exit-plan-mode.ts";
import { planRead } from "./user/plan-read.ts";
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
export const skillTools: readonly ((skills: SkillSource) => Tool)[] = [skillTool];

/** Offered to the main agent when there is a memory. */
export const memoryTools: readonly ((memory: MemoryPort) => Tool)[] = [storeMemoryTool];

/** Offered with them when that memory accepts votes. */
export const memoryVoteTools: readonly ((memory: MemoryPort) => Tool)[] = [voteMemoryTool];

/** Offered to agents that list it, when there is a context board. */
export const boardTools: readonly Tool[] = [contextBoard];

/** Offered when agents may be started; rebuilt when the list of agents changes. */
export const agentTools: readonly ((agents: AgentChoices) => Tool)[] = [
  taskTool,
  () => readAgent,
  () => writeAgent,
  () => listAgents,
  () => stopAgent,
];

/** Names of built-in tools that a session may lack; a tool list may still name them. */
export const optionalToolNames: readonly string[] = [
  ...[...searchTools, ...autopilotTools, ...interactiveTools, ...boardTools].map(({ name }) => name),
  ...["skill", "store_memory", "vote_memory", "read_inbox", "tool_search_tool_regex"],
  ...["task", "read_agent", "write_agent", "list_agents", "stop_agent", "subagents_run", "subagents_read"],
];

/** Offered when workers can be coordinated. */
export const coordinationTools: readonly ((settings?: CoordinationSettings) => Tool)[] = [
  subagentsRunTool,
  () => subagentsRead,
];

/** Offered to coordinated workers only. */
export const workerOnlyTools: readonly ((own: { receiver: ResultReceiver; environments: Environments }) => Tool)[] = [
  ({ environments }) => environmentDetectTool(environments),
  () => memoryRead,
  () => planRead,
  () => taskList,
  ({ receiver }) => submitResultTool(receiver),
];

/** Offered to the main agent when sidekicks may write to it. */
export const inboxTools: readonly Tool[] = [readInbox];

/** Offered to sidekicks only. */
export const sidekickOnlyTools: readonly ((inbox: InboxSender) => Tool)[] = [sendInboxTool];
