/**
 * Agent definitions. A definition describes an agent's purpose, prompt, tools and limits. Other folders run agents.
 * An agent never has more permissions than the agent that starts it, whatever its definition asks for. The only tools
 * it may have in addition are those of MCP servers that its definition declares, and those that a client hid from the
 * main agent only.
 *
 * - `parse-agent.ts`: parses a Markdown file, or an object sent by a program, into a definition.
 * - `names.ts`: validates, normalises and looks up agent names.
 * - `effective-tools.ts`, `effective-model.ts`: resolve the tools and the model at start.
 * - `model-choices.ts`: lists the agents that a model may choose.
 * - `sidekick.ts`: parses the triggers of agents that start automatically.
 * - `builtin/`: the built-in agents, one Markdown file each.
 */
import type { Sidekick } from "./sidekick.ts";

/** The built-in agent that maintains the context board. Its name is prescribed by the wire. */
export const BOARD_AGENT = "rem-agent";

/** The origin of a definition. `inherited`: a project file in a folder above the working directory. */
export type AgentSource = "program" | "user" | "project" | "inherited" | "plugin" | "remote" | "builtin";

/**
 * Optional sections of an agent's system prompt. Repository instructions are controlled by `includeCustomInstructions`.
 */
export type PromptPart = (typeof promptParts)[number];
export const promptParts = ["environment", "safety", "tools", "parallel"] as const;

export interface AgentLimits {
  readonly turns?: number;
  readonly tokens?: number;
  readonly costUsd?: number;
  readonly seconds?: number;
}

export interface AgentDefinition {
  /** The file name without its extension; without a file, the name. */
  readonly id: string;
  /** The name that users and models refer to the agent by. */
  readonly name: string;
  readonly displayName: string;
  /** Models choose an agent by this text. Definitions sent by a program may leave it empty. */
  readonly description: string;
  readonly prompt: string;
  /** Tool names as used in this project; an entry may end in `*`. Null: every tool of the parent agent. */
  readonly tools: readonly string[] | null;
  /** Excluded tools. Takes precedence over `tools`. */
  readonly disallowedTools: readonly string[];
  /** Allows only read-only tools. */
  readonly readOnly: boolean;
  /** Server configurations as written. The loader has already decided whether these servers may run. */
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  /** Model names in order of preference. Empty: use the parent agent's model. */
  readonly models: readonly string[];
  readonly modelPolicy: "preferred" | "required";
  readonly reasoningEffort?: string;
  readonly skills: readonly string[];
  /** False: only models and programs can select this agent, not users. */
  readonly userInvocable: boolean;
  /** Whether a model may choose it. */
  readonly infer: boolean;
  /** Whether the repository's instructions are part of the prompt. */
  readonly includeCustomInstructions: boolean;
  readonly promptParts: readonly PromptPart[];
  readonly limits?: AgentLimits;
  readonly isolation?: "worktree";
  /** Used by sessions that run on workers of a database. Default: elsewhere with `isolation`, else here. */
  readonly placement?: "elsewhere" | "here";
  /** JSON schema of the agent's answer. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** Stored as written. The code that uses it validates it. */
  readonly github?: unknown;
  /** Set for an agent that starts automatically beside the main agent and cannot be selected. */
  readonly sidekick?: Sidekick;
  readonly source: AgentSource;
  readonly path?: string;
  readonly pluginName?: string;
}

export const MAX_AGENT_BYTES = 64 * 1024;
export const MAX_NAME_CHARACTERS = 64;
export const MAX_DESCRIPTION_CHARACTERS = 1024;
