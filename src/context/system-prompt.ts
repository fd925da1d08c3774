/** What the main agent is told before the first message: our own sections, the place, and what others add to them. */

import { quoted, wrapped } from "../lib/quoting.ts";
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
  /** The text `readInstructions` gives: wrapped and bounded. */
  readonly instructions?: string;
  /** What the model must know of skills, bounded by its owner. */
  readonly skills?: string;
  /** The prompt of the agent that was chosen to lead the session. */
  readonly agentPrompt?: string;
  /** What is remembered of this place: wrapped, quoted and bounded by its owner. */
  readonly memories?: string;
  /** What holds in this session: its mode, its limits. Bounded by its owner. */
  readonly extra?: string;
  readonly config?: SystemMessageConfig;
}

/** Nothing unbounded enters a model request: each fact about the place is cut at this length. */
const MAX_FACT_CHARACTERS = 500;
const MAX_AGENT_PROMPT_CHARACTERS = 64 * 1024;
const OPERATING_SYSTEMS = new Map([
  ["linux", "Linux"],
  ["darwin", "macOS"],
  ["win32", "Windows"],
]);

/** The same bytes for the same request, so that prompt caches hold. Sections to be transformed stay as they are. */
export function systemPrompt(request: PromptRequest): string {
  return assembleUnasked(promptParts(request), request.config);
}

/** For `assemblePrompt`, where someone can be asked to transform sections. */
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
        wrapped("agent_instructions", {}, quoted(clip(request.agentPrompt, MAX_AGENT_PROMPT_CHARACTERS))),
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
  return wrapped("environment_context", {}, lines.join("\n"));
}

/** Names of folders and branches come from anywhere: one line each, and no way out of the block. */
function fact(value: string): string {
  return clip(quoted(value).replace(/\s+/g, " "), MAX_FACT_CHARACTERS);
}
