import type { AgentDefinition } from "../../agents/agent.ts";
import type { Instructions } from "../../context/instructions.ts";
import { assemblePrompt, type SectionTransform } from "../../context/sections.ts";
import { skillShelf } from "../../context/skills/load-skill.ts";
import { skillsLoaded } from "../../context/skills/skills.ts";
import type { SystemMessageConfig } from "../../context/system-message.ts";
import { type PromptRequest, promptParts, systemPrompt } from "../../context/system-prompt.ts";
import { toolsInMode } from "../../session/modes/modes.ts";
import type { PromptAndTools } from "../../session/session-model.ts";
import { skillTools } from "../../tools/builtin.ts";
import type { ToolSearch } from "../../tools/mcp/search.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SessionMemory } from "../knowledge/session-memory.ts";
import type { SessionMcp } from "../mcp/session-mcp.ts";
import { withCoreSkills } from "./core-skills.ts";
import type { LiveSkills } from "./live-skills.ts";
import type { ModeParts } from "./modes.ts";
import { toolsOfLead } from "./preselect.ts";
import { chooseTools, inheritedTools, mainTools, type ToolChoice } from "./tool-choice.ts";

export interface PromptAndToolsParts {
  /** Only these of the skills that come with troupe; all of them by default. */
  readonly builtinSkills?: readonly string[] | undefined;
  readonly prompt: Omit<PromptRequest, "tools" | "instructions">;
  /** Instead of everything else the main agent would be told. */
  readonly system?: string;
  /** Built in, and what the embedding program brings. */
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice;
  /** The agent that leads the session: nobody in it has tools beyond its. */
  readonly lead?: AgentDefinition | undefined;
  /** Its skills in full. */
  readonly leadSkills?: string;
  readonly mode: Pick<ModeParts, "current" | "section">;
  readonly skills: LiveSkills;
  /** False: not even those that come with tools. */
  readonly hasSkills?: boolean;
  readonly instructions: Instructions;
  readonly mcp: SessionMcp | undefined;
  readonly memory: SessionMemory | undefined;
  /** Hides tools of servers and programs behind a search when there are very many. */
  readonly search: ((tools: readonly Tool[]) => ToolSearch) | undefined;
  /** Who is asked for the text of sections that are to be transformed. */
  readonly transform?: SectionTransform | undefined;
}

/** What the main agent of a session is told and given. It changes only when servers come, go or change their tools. */
export class LivePromptAndTools implements PromptAndTools {
  readonly #parts: PromptAndToolsParts;
  readonly #makeShelf: () => readonly Tool[];
  #shelf: readonly Tool[] = [];
  #lead: AgentDefinition | undefined;
  /** Of who leads: its skills in full, and the tools it came with since the session is open. */
  #brought: { readonly skills: string; readonly tools: readonly Tool[] };
  #search: ToolSearch | undefined;
  #seen: readonly Tool[] | undefined;
  #system = "";
  /** What the system prompt is made of, while someone must still be asked about it. */
  #unasked: PromptRequest | undefined;

  constructor(parts: PromptAndToolsParts) {
    this.#parts = parts;
    this.#lead = parts.lead;
    this.#brought = { skills: parts.leadSkills ?? "", tools: [] };
    const { skills } = parts;
    const shelf = withCoreSkills(
      skillShelf(() => skills.all),
      chooseTools(parts.tools, parts.choice),
      parts.builtinSkills,
    );
    // Made anew when something changes: their description names the skills.
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

  get lead(): AgentDefinition | undefined {
    return this.#lead;
  }

  /** Who led when the session began; the servers it brought are among the session's. */
  get firstLead(): AgentDefinition | undefined {
    return this.#parts.lead;
  }

  /** Another agent leads from the next message on: its prompt, what it brings, and no tool it does not list. */
  setLead(lead: AgentDefinition | undefined, brought = { skills: "", tools: [] as readonly Tool[] }): void {
    this.#lead = lead;
    this.#brought = brought;
    this.refresh();
  }

  /** Before anyone chooses among them. */
  get allTools(): readonly Tool[] {
    const { tools, mcp, lead } = this.#parts;
    const itsServers = lead === undefined || lead.name === this.#lead?.name ? {} : (lead.mcpServers ?? {});
    const ofServers = (mcp?.tools ?? []).filter(
      ({ from }) => from?.kind !== "mcp" || !Object.hasOwn(itsServers, from.serverName),
    );
    return [...tools, ...this.#shelf, ...ofServers, ...this.#brought.tools];
  }

  /** Everything the session has, for agents that are given some of it. */
  get sessionTools(): readonly Tool[] {
    const { choice } = this.#parts;
    const lead = this.#lead;
    const chosen = chooseTools(this.allTools, choice);
    return lead ? toolsOfLead(lead, chosen) : chosen;
  }

  /** The servers have other tools now, or the mode is another one. */
  refresh(): void {
    this.#shelf = this.#makeShelf();
    const { choice, search, prompt, instructions, mcp, memory, mode } = this.#parts;
    const lead = this.#lead;
    const all = visibleTools(lead, this.sessionTools, choice);
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
      ...(lead && { agentPrompt: lead.prompt }),
      tools: names,
      instructions: instructions.text,
      ...(memory?.section && { memories: memory.section }),
      ...(extra !== "" && { extra }),
    };
    const isAsked = this.#parts.transform && this.#parts.system === undefined && transforms(prompt.config);
    if (isAsked) this.#unasked = request;
    // What was asked for stays until the answer to the next question is there.
    if (!isAsked || this.#system === "") this.#system = this.#parts.system ?? systemPrompt(request);
  }

  /** Whether there is ever something to wait for. */
  get isAsked(): boolean {
    return this.#unasked !== undefined;
  }

  /** Sections that a program writes are asked for before the prompt is used; who fails leaves them as they are. */
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

/** Where servers, a memory or programs have a say there may be something to wait for; without, nobody pays for the question. */
export function offerThatWaits(
  offer: LivePromptAndTools,
  {
    mcp,
    memory,
    joining,
  }: Pick<PromptAndToolsParts, "mcp" | "memory"> & { joining?: ((signal: AbortSignal) => Promise<void>) | undefined },
): PromptAndTools {
  if (!mcp && !memory && !offer.isAsked && !joining) return offer;
  return {
    get system() {
      return offer.system;
    },
    get tools() {
      return offer.tools;
    },
    get skills() {
      return offer.skills;
    },
    find: (name) => offer.find(name),
    get isQuick() {
      return !mcp && !joining && !offer.isAsked && memory?.isQuick === true;
    },
    async ready(signal) {
      await Promise.all([mcp?.ready(signal), memory?.ready(signal), joining?.(signal)]);
      await offer.settle();
    },
  };
}

const transforms = (config: SystemMessageConfig | undefined): boolean =>
  config?.mode === "customize" && Object.values(config.sections ?? {}).some(({ action }) => action === "transform");

/** The default agent has less than a custom one that leads; of those, only one with a tool list sees listed-only tools. */
function visibleTools(
  lead: AgentDefinition | undefined,
  tools: readonly Tool[],
  choice: ToolChoice | undefined,
): readonly Tool[] {
  if (lead === undefined) return mainTools(tools, choice);
  return lead.tools === null ? inheritedTools(tools, choice) : tools;
}
