import type { PromptRequest } from "../../context/system-prompt.ts";
import { defined } from "../../lib/defined.ts";
import { wrapInTag } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import { autopilotTools, formTools, interactiveTools } from "../../tools/builtin.ts";
import type { ToolSearchOptions } from "../../tools/mcp/search.ts";
import type { Tool } from "../../tools/tool.ts";
import type { CurrentAgents } from "../agents/current-agents.ts";
import type { SessionBoard } from "../knowledge/session-board.ts";
import type { SessionMemory } from "../knowledge/session-memory.ts";
import type { SessionMcp } from "../mcp/session-mcp.ts";
import type { CurrentSkills } from "./current-skills.ts";
import type { MainAgent } from "./main-agent.ts";
import { CurrentPromptAndTools } from "./prompt-and-tools.ts";
import type { SessionRules } from "./session-rules.ts";
import type { SessionSearch } from "./session-search.ts";
import type { SessionSetup } from "./session-setup.ts";
import { requireKnown, type ToolChoice } from "./tool-choice.ts";

/** Returns the current tools that do not come from servers. Those that name agents change with them. */
export function sessionTools(
  { request, tools }: SessionSetup,
  parts: {
    workspace: MainAgent["workspace"];
    agents: CurrentAgents | undefined;
    board: SessionBoard | undefined;
    memory: SessionMemory | undefined;
    search: SessionSearch;
  },
): () => readonly Tool[] {
  const { workspace, agents, board, memory, search } = parts;
  const variant = request.client?.askUserVariant === "elicitation" ? formTools : interactiveTools;
  const mayAsk = request.client?.askUser ?? workspace.settings.effective.askUser ?? true;
  const asking = mayAsk ? variant : [];
  const fixed = [...tools, ...autopilotTools, ...asking, ...(board?.tools ?? [])];
  const external = request.client?.program?.tools;
  const builtin = (): readonly Tool[] => [
    ...fixed,
    ...search.tools(),
    ...(agents?.tools ?? []),
    ...(memory?.tools ?? []),
  ];
  return external ? () => external.among(builtin()) : builtin;
}

/** Returns the environment part of the agents' prompts. */
export function promptOf({ context }: SessionSetup): Pick<PromptRequest, "context" | "platform"> {
  return { context, platform: process.platform };
}

/** Returns the choice of tools from the request and settings. */
export function choiceOf(
  { request }: SessionSetup,
  { workspace }: MainAgent,
  board: SessionBoard | undefined,
): ToolChoice {
  const { excludedTools = [], availableTools } = workspace.settings.effective;
  const available = request.tools?.choice?.available ?? availableTools;
  const choice = {
    ...request.tools?.choice,
    excluded: [...(request.tools?.choice?.excluded ?? []), ...excludedTools],
    ...defined({ available }),
  };
  return board?.hidden(choice) ?? choice;
}

/** Returns the organisation's instructions, which the program vouches for, with limited length. */
function organisation({ request }: SessionSetup): Pick<PromptRequest, "extra"> {
  const { organizationInstructions: text = "" } = request.context ?? {};
  if (text.trim() === "") return {};
  return { extra: wrapInTag("organization_instructions", {}, clip(text, MAX_ORGANISATION_CHARACTERS)) };
}

const MAX_ORGANISATION_CHARACTERS = 32 * 1024;

/** Builds the system prompt and tools of the main agent. */
export async function sessionPrompt(
  setup: SessionSetup,
  parts: {
    mainAgent: MainAgent;
    rules: SessionRules;
    tools: () => readonly Tool[];
    choice: ToolChoice;
    mcp: SessionMcp | undefined;
    memory: SessionMemory | undefined;
    board: SessionBoard | undefined;
    skills: CurrentSkills;
  },
): Promise<CurrentPromptAndTools> {
  const { request, shared, channel } = setup;
  const { selection, workspace } = parts.mainAgent;
  const searchSettings = { ...workspace.settings.effective.toolSearch, ...request.tools?.search };
  const { rules, tools, choice, mcp, memory, board, skills } = parts;
  const promptAndTools = new CurrentPromptAndTools({
    prompt: {
      ...promptOf(setup),
      ...organisation(setup),
      ...defined({ config: request.context?.systemMessage }),
    },
    transform: request.client?.program?.transform,
    ...defined({ system: board?.consolidating?.system }),
    get tools() {
      return tools();
    },
    choice,
    mainAgent: selection.definition,
    mainAgentSkills: selection.skills,
    skills,
    builtinSkills: request.context?.builtinSkills,
    hasSkills: request.workspace?.skills !== false,
    instructions: workspace.instructions,
    mode: rules.mode,
    mcp,
    memory,
    search: mcp && (await shared.searchFor(searchSettings, searchMemory(setup))),
  });
  channel.promptAndTools = promptAndTools;
  const { program } = request.client ?? {};
  if (program?.tools) program.tools.onChange = channel.toolsChanged;
  // Servers and clients may bring tools later, so unknown names are refused only without them.
  if (!mcp && !program) requireKnown(promptAndTools.allTools, request.tools?.choice);
  return promptAndTools;
}

/** Keeps tools found by a search available when the session is resumed. */
function searchMemory({ log, channel }: SessionSetup): Pick<ToolSearchOptions, "found" | "onFound"> {
  return {
    found: log.events.flatMap((event) => (event.type === "tool_search.activated" ? event.data.toolNames : [])),
    onFound: (names) => void channel.emit("tool_search.activated", { strategy: "regex", toolNames: [...names] }),
  };
}
