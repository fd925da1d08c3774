import { applyPatch } from "./apply-patch.ts";
import { askUser } from "./ask-user.ts";
import { askUserForm } from "./ask-user-form.ts";
import { bash } from "./bash.ts";
import { contextBoard } from "./context-board.ts";
import { create } from "./create.ts";
import { edit } from "./edit.ts";
import { environmentDetectTool } from "./environment-detect.ts";
import { exitPlanMode } from "./exit-plan-mode.ts";
import { glob } from "./glob.ts";
import { grep } from "./grep.ts";
import type { InboxSender } from "./inbox.ts";
import { listAgents } from "./list-agents.ts";
import { listBash } from "./list-bash.ts";
import { memoryRead } from "./memory-read.ts";
import { planRead } from "./plan-read.ts";
import { readAgent } from "./read-agent.ts";
import { readBash } from "./read-bash.ts";
import { readInbox } from "./read-inbox.ts";
import { sendInboxTool } from "./send-inbox.ts";
import { type SkillSource, skillTool } from "./skill.ts";
import { sql } from "./sql.ts";
import { stopAgent } from "./stop-agent.ts";
import { stopBash } from "./stop-bash.ts";
import { type MemoryPort, storeMemoryTool } from "./store-memory.ts";
import type { Desk } from "./subagents/desk.ts";
import type { Environments } from "./subagents/environment.ts";
import { subagentsRead } from "./subagents-read.ts";
import { type CoordinationSettings, subagentsRunTool } from "./subagents-run.ts";
import { submitResultTool } from "./submit-result.ts";
import { type AgentSource, taskTool } from "./task.ts";
import { taskComplete } from "./task-complete.ts";
import { taskList } from "./task-list.ts";
import type { Tool } from "./tool.ts";
import { updateTodo } from "./update-todo.ts";
import { view } from "./view.ts";
import { voteMemoryTool } from "./vote-memory.ts";
import { webFetch } from "./web-fetch.ts";
import { webSearch } from "./web-search.ts";
import { writeAgent } from "./write-agent.ts";
import { writeBash } from "./write-bash.ts";

/** Offered in every session. A new tool is one line here. */
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

/** Offered in addition where the session can search the web. */
export const searchTools: readonly Tool[] = [webSearch];

/** Offered in addition while the agent works on its own until the task is done. */
export const autopilotTools: readonly Tool[] = [taskComplete];

/** Offered in addition where someone can answer. */
export const interactiveTools: readonly Tool[] = [askUser, exitPlanMode];
/** The same for clients that show forms. */
export const formTools: readonly Tool[] = [askUserForm, exitPlanMode];

/** Offered in addition where there are skills. */
export const skillTools: readonly ((skills: SkillSource) => Tool)[] = [skillTool];

/** Offered to the main agent in addition where there is a memory. */
export const memoryTools: readonly ((memory: MemoryPort) => Tool)[] = [storeMemoryTool];

/** Offered with them where that memory takes votes. */
export const memoryVoteTools: readonly ((memory: MemoryPort) => Tool)[] = [voteMemoryTool];

/** Offered where there is a context board, to agents that list it. */
export const boardTools: readonly Tool[] = [contextBoard];

/** Offered in addition where agents may be started; made anew when the agents to choose from change. */
export const agentTools: readonly ((agents: AgentSource) => Tool)[] = [
  taskTool,
  () => readAgent,
  () => writeAgent,
  () => listAgents,
  () => stopAgent,
];

/** Names of the built-in tools that a session may lack: a list of tools may name them all the same. */
export const optionalToolNames: readonly string[] = [
  ...[...searchTools, ...autopilotTools, ...interactiveTools, ...boardTools].map(({ name }) => name),
  ...["skill", "store_memory", "vote_memory", "read_inbox"],
  ...["task", "read_agent", "write_agent", "list_agents", "stop_agent", "subagents_run", "subagents_read"],
];

/** Offered in addition where workers can be coordinated. */
export const coordinationTools: readonly ((settings?: CoordinationSettings) => Tool)[] = [
  subagentsRunTool,
  () => subagentsRead,
];

/** Offered to such a worker, and to nobody else. */
export const workerOnlyTools: readonly ((own: { desk: Desk; environments: Environments }) => Tool)[] = [
  ({ environments }) => environmentDetectTool(environments),
  () => memoryRead,
  () => planRead,
  () => taskList,
  ({ desk }) => submitResultTool(desk),
];

/** Offered to the main agent in addition where sidekicks may write to it. */
export const inboxTools: readonly Tool[] = [readInbox];

/** Offered to a sidekick, and to nobody else. */
export const sidekickOnlyTools: readonly ((inbox: InboxSender) => Tool)[] = [sendInboxTool];
