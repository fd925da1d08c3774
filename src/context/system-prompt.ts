/**
 * The main agent's system prompt: our own sections, the environment, and additions from other sources. This folder
 * builds the context of model requests: prompt sections, instructions, skills, memory, the board, and compaction.
 */

import { quoted, wrapInTag } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import type { WorkingDirectory } from "../protocol/event.ts";
import { namedTexts } from "./named-texts.ts";
import { assembleUnasked, type PromptParts } from "./sections.ts";
import type { SystemMessageConfig } from "./system-message.ts";
import source from "./system-prompt.md";

export interface PromptRequest {
  readonly context: WorkingDirectory;
  /** As in `process.platform`. */
  readonly platform: string;
  readonly tools: readonly string[];
  /** The text from `readInstructions`: wrapped and bounded. */
  readonly instructions?: string;
  /** The list of skills, bounded by its producer. */
  readonly skills?: string;
  /** The prompt of the session's main agent. */
  readonly agentPrompt?: string;
  /** The memory section: wrapped, quoted and bounded by its producer. */
  readonly memories?: string;
  /** The session's current mode and limits, bounded by its producer. */
  readonly extra?: string;
  readonly config?: SystemMessageConfig;
}

/** Maximum length of each fact about the environment, so that nothing unbounded enters a model request. */
const MAX_FACT_CHARACTERS = 500;
const MAX_AGENT_PROMPT_CHARACTERS = 64 * 1024;
const OPERATING_SYSTEMS = new Map([
  ["linux", "Linux"],
  ["darwin", "macOS"],
  ["win32", "Windows"],
]);

/**
 * Returns the same bytes for the same request, so that prompt caches hold. Sections with the action `transform` stay
 * unchanged.
 */
export function systemPrompt(request: PromptRequest): string {
  return assembleUnasked(promptParts(request), request.config);
}

/** Returns the sections for `assemblePrompt`, which can ask the host to transform them. */
export function promptParts(request: PromptRequest): PromptParts {
  const texts = namedTexts(source);
  const together = (...parts: (string | undefined)[]): string => parts.filter(Boolean).join("\n\n");
  return {
    ...Object.fromEntries(texts),
    environment_context: environmentOf(request),
    tool_instructions: together(texts.get("tool_instructions"), request.skills),
    custom_instructions: request.instructions ?? "",
    memories: request.memories ?? "",
    runtime_instructions: together(
      texts.get("runtime_instructions"),
      request.agentPrompt &&
        wrapInTag("agent_instructions", {}, quoted(clip(request.agentPrompt, MAX_AGENT_PROMPT_CHARACTERS))),
      request.extra,
    ),
  };
}

function environmentOf({ context, platform, tools }: PromptRequest): string {
  const facts: [string, string | undefined][] = [
    ["Current working directory", context.cwd],
    ["Git root", context.gitRoot ?? "none: this folder is not in a git repository"],
    ["Repository", context.repository],
    ["Branch", context.branch],
    ["Operating System", OPERATING_SYSTEMS.get(platform) ?? platform],
    ["Tools", tools.join(", ")],
  ];
  const lines = facts.flatMap(([name, value]) => (value ? [`- ${name}: ${fact(value)}`] : []));
  return wrapInTag("environment_context", {}, lines.join("\n"));
}

/** Returns an untrusted name (folder, branch) on one line, quoted so that it cannot close the block. */
function fact(value: string): string {
  return clip(quoted(value).replace(/\s+/g, " "), MAX_FACT_CHARACTERS);
}
