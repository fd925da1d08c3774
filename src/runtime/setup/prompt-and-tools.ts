import type { AgentDefinition } from "../../agents/agent.ts";
import type { Instructions } from "../../context/instructions.ts";
import { assemblePrompt, type SectionTransform } from "../../context/sections.ts";
import { skillPort } from "../../context/skills/load-skill.ts";
import { skillsLoaded } from "../../context/skills/skills.ts";
import type { SystemMessageConfig } from "../../context/system-message.ts";
import { type PromptRequest, promptParts, systemPrompt } from "../../context/system-prompt.ts";
import { defined } from "../../lib/defined.ts";
import { toolsInMode } from "../../session/modes/modes.ts";
import type { PromptAndTools } from "../../session/session-model.ts";
import { skillTools } from "../../tools/builtin.ts";
import type { ToolSearch } from "../../tools/mcp/search.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionMemory } from "../knowledge/session-memory.ts";
import type { SessionMcp } from "../mcp/session-mcp.ts";
import { withCoreSkills } from "./core-skills.ts";
import type { CurrentSkills } from "./current-skills.ts";
import type { ModeParts } from "./modes.ts";
import { toolsOfMainAgent } from "./select-main-agent.ts";
import { chooseTools, inheritedTools, mainTools, type ToolChoice } from "./tool-choice.ts";

export interface PromptAndToolsParts {
  /** The only built-in skills to offer (default: all). */
  readonly builtinSkills?: readonly string[] | undefined;
  readonly prompt: Omit<PromptRequest, "tools" | "instructions">;
  /** Replaces the whole system prompt. */
  readonly system?: string;
  /** Built-in tools and those of the embedding program. */
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice;
  /** The main agent. Nothing in the session has tools beyond its own. */
  readonly mainAgent?: AgentDefinition | undefined;
  /** The full text of its skills. */
  readonly mainAgentSkills?: string;
  readonly mode: Pick<ModeParts, "current" | "section">;
  readonly skills: CurrentSkills;
  /** False: no skills, not even built-in ones. */
  readonly hasSkills?: boolean;
  readonly instructions: Instructions;
  readonly mcp: SessionMcp | undefined;
  readonly memory: SessionMemory | undefined;
  /** Hides tools of servers and programs behind a search if there are very many. */
  readonly search: ((tools: readonly Tool[]) => ToolSearch) | undefined;
  /** Writes the sections of the prompt that are to be transformed. */
  readonly transform?: SectionTransform | undefined;
}

/** The system prompt and tools of the main agent. They change only with servers, skills, agents or the mode. */
export class CurrentPromptAndTools implements PromptAndTools {
  readonly #parts: PromptAndToolsParts;
  readonly #makeShelf: () => readonly Tool[];
  #shelf: readonly Tool[] = [];
  #mainAgent: AgentDefinition | undefined;
  /** Skills and tools that the main agent brought while the session is open. */
  #brought: { readonly skills: string; readonly tools: readonly Tool[] };
  #search: ToolSearch | undefined;
  #seen: readonly Tool[] | undefined;
  #system = "";
  /** The prompt request, while its sections still have to be transformed. */
  #unasked: PromptRequest | undefined;

  constructor(parts: PromptAndToolsParts) {
    this.#parts = parts;
    this.#mainAgent = parts.mainAgent;
    this.#brought = { skills: parts.mainAgentSkills ?? "", tools: [] };
    const { skills } = parts;
    const shelf = withCoreSkills(
      skillPort(() => skills.all),
      chooseTools(parts.tools, parts.choice),
      parts.builtinSkills,
    );
    // Rebuilt on changes, because the tool's description names the skills.
    const isEmpty = (): boolean => parts.hasSkills === false || shelf.list().length === 0;
    this.#makeShelf = () => (isEmpty() ? [] : skillTools.map((make) => make(shelf)));
    this.refresh();
  }

  get tools(): readonly Tool[] {
    return this.#search?.offered() ?? this.#seen ?? [];
  }

  get system(): string {
    return this.#system;
  }

  get skills(): NonNullable<PromptAndTools["skills"]> {
    return skillsLoaded(this.#parts.skills.all).skills;
  }

  find(name: string): Tool | undefined {
    return this.#search?.find(name);
  }

  get mainAgent(): AgentDefinition | undefined {
    return this.#mainAgent;
  }

  /** The main agent at the start. Its servers belong to the session. */
  get firstMainAgent(): AgentDefinition | undefined {
    return this.#parts.mainAgent;
  }

  /** Switches the main agent from the next message on: its prompt, its additions, and only the tools it lists. */
  setMainAgent(mainAgent: AgentDefinition | undefined, brought = { skills: "", tools: [] as readonly Tool[] }): void {
    this.#mainAgent = mainAgent;
    this.#brought = brought;
    this.refresh();
  }

  /** All tools, before any choice. */
  get allTools(): readonly Tool[] {
    const { tools, mcp, mainAgent } = this.#parts;
    const itsServers =
      mainAgent === undefined || mainAgent.name === this.#mainAgent?.name ? {} : (mainAgent.mcpServers ?? {});
    const ofServers = (mcp?.tools ?? []).filter(
      ({ origin }) => origin?.kind !== "mcp" || !Object.hasOwn(itsServers, origin.serverName),
    );
    return [...tools, ...this.#shelf, ...(mcp?.resourceTools ?? []), ...ofServers, ...this.#brought.tools];
  }

  /** All tools of the session, from which agents get theirs. */
  get sessionTools(): readonly Tool[] {
    const { choice } = this.#parts;
    const mainAgent = this.#mainAgent;
    const chosen = chooseTools(this.allTools, choice);
    return mainAgent ? toolsOfMainAgent(mainAgent, chosen) : chosen;
  }

  /** Rebuilds prompt and tools after tools or the mode have changed. */
  refresh(): void {
    this.#shelf = this.#makeShelf();
    const { choice, search, prompt, instructions, mcp, memory, mode } = this.#parts;
    const mainAgent = this.#mainAgent;
    const all = visibleTools(mainAgent, this.sessionTools, choice);
    const tools = toolsInMode(mode.current(), all);
    this.#seen = tools;
    if (search) {
      if (this.#search) this.#search.update(tools);
      else this.#search = search(tools);
    }
    const names = this.tools.filter(({ needs }) => !needs).map(({ name }) => name);
    const extra = [prompt.extra, mcp?.instructions, this.#brought.skills, mode.section()].filter(Boolean).join("\n\n");
    const request = {
      ...prompt,
      ...defined({ agentPrompt: mainAgent?.prompt }),
      tools: names,
      instructions: instructions.text,
      ...(memory?.section && { memories: memory.section }),
      ...(extra !== "" && { extra }),
    };
    const isAsked = this.#parts.transform && this.#parts.system === undefined && transforms(prompt.config);
    if (isAsked) this.#unasked = request;
    // The transformed prompt stays until the next transformation is done.
    if (!isAsked || this.#system === "") this.#system = this.#parts.system ?? systemPrompt(request);
  }

  /** True while a transformation is pending. */
  get isAsked(): boolean {
    return this.#unasked !== undefined;
  }

  /** Transforms sections before the prompt is used. If a program fails, its sections stay unchanged. */
  async settle(): Promise<void> {
    const request = this.#unasked;
    const { transform } = this.#parts;
    if (!request || !transform) return;
    const system = await assemblePrompt(promptParts(request), request.config, transform);
    if (this.#unasked !== request) return this.settle();
    this.#unasked = undefined;
    this.#system = system;
  }
}

/** Adds waiting for servers, memory and programs. Without any of them, returns the prompt and tools unchanged. */
export function promptAndToolsWhenReady(
  promptAndTools: CurrentPromptAndTools,
  {
    mcp,
    memory,
    joining,
  }: Pick<PromptAndToolsParts, "mcp" | "memory"> & { joining?: ((signal: AbortSignal) => Promise<void>) | undefined },
): PromptAndTools {
  if (!mcp && !memory && !promptAndTools.isAsked && !joining) return promptAndTools;
  return {
    get system() {
      return promptAndTools.system;
    },
    get tools() {
      return promptAndTools.tools;
    },
    get skills() {
      return promptAndTools.skills;
    },
    find: (name) => promptAndTools.find(name),
    get isQuick() {
      return !mcp && !joining && !promptAndTools.isAsked && memory?.isQuick === true;
    },
    async ready(signal) {
      await Promise.all([mcp?.ready(signal), memory?.ready(signal), joining?.(signal)]);
      await promptAndTools.settle();
    },
  };
}

const transforms = (config: SystemMessageConfig | undefined): boolean =>
  config?.mode === "customize" && Object.values(config.sections ?? {}).some(({ action }) => action === "transform");

/**
 * Returns the visible tools. The default agent sees fewer than a custom one; only an agent with a tool list sees
 * listed-only tools.
 */
function visibleTools(
  mainAgent: AgentDefinition | undefined,
  tools: readonly Tool[],
  choice: ToolChoice | undefined,
): readonly Tool[] {
  if (mainAgent === undefined) return mainTools(tools, choice);
  return mainAgent.tools === null ? inheritedTools(tools, choice) : tools;
}
