/**
 * Agents: who can be given work. A definition says what an agent is for, what it is told, and what it may use; running
 * one is not done here. A definition narrows: whatever it says, its agent never has more than whoever started it.
 *
 * - `parse-agent.ts`: from a Markdown file, or from an object of a program, to a definition.
 * - `names.ts`: how agents are called and found.
 * - `effective-tools.ts`, `effective-model.ts`, `effective-skills.ts`: what an agent gets when it starts.
 * - `model-choices.ts`: the agents a model may choose from.
 * - `sidekick.ts`: what starts an agent that nobody asks for.
 * - `builtin/`: the agents that are always there, one Markdown file each.
 */
import type { Sidekick } from "./sidekick.ts";

/** The built-in agent that keeps the context board in order. */
export const MEMORY_AGENT = "rem-agent";

/** Who brought it. `inherited` is of the project too, from a folder above the working folder. */
export type AgentSource = "program" | "user" | "project" | "inherited" | "plugin" | "remote" | "builtin";

/** What an agent is told besides its own prompt. Instructions of the repository are apart: `includeCustomInstructions`. */
export type PromptPart = (typeof promptParts)[number];
export const promptParts = ["environment", "safety", "tools", "parallel"] as const;

export interface AgentLimits {
  readonly turns?: number;
  readonly tokens?: number;
  readonly costUsd?: number;
  readonly seconds?: number;
}

export interface AgentDefinition {
  /** Name of the file without its ending; where there is no file, the name. */
  readonly id: string;
  /** What people and models call it by. */
  readonly name: string;
  readonly displayName: string;
  /** By this a model chooses; may be empty when a program brought it. */
  readonly description: string;
  readonly prompt: string;
  /** In our names for tools, with `*` at the end of some; null: all that whoever starts it has. */
  readonly tools: readonly string[] | null;
  /** Never these, whatever `tools` says. */
  readonly disallowedTools: readonly string[];
  /** Only tools that change nothing. */
  readonly readOnly: boolean;
  /** As written; whether they may run was decided by whoever loaded the definition. */
  readonly mcpServers?: Readonly<Record<string, unknown>>;
  /** In order of preference; empty: the model of whoever starts it. */
  readonly models: readonly string[];
  readonly modelPolicy: "preferred" | "required";
  readonly reasoningEffort?: string;
  readonly skills: readonly string[];
  /** False: people cannot choose it, only models and programs. */
  readonly userInvocable: boolean;
  /** Whether a model may choose it. */
  readonly infer: boolean;
  /** Whether it is told the instructions of the repository. */
  readonly includeCustomInstructions: boolean;
  readonly promptParts: readonly PromptPart[];
  readonly limits?: AgentLimits;
  readonly isolation?: "worktree";
  /** JSON schema of its answer. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** As written; validated by whoever uses it. */
  readonly github?: unknown;
  /** Set when it starts by itself, beside the main agent, and nobody chooses it. */
  readonly sidekick?: Sidekick;
  readonly source: AgentSource;
  readonly path?: string;
  readonly pluginName?: string;
}

export const MAX_AGENT_BYTES = 64 * 1024;
export const MAX_NAME_CHARACTERS = 64;
export const MAX_DESCRIPTION_CHARACTERS = 1024;
