import { defined } from "../../lib/defined.ts";
import type { EventData } from "../../protocol/event.ts";
import type { BoundHooks } from "./hooked-calls.ts";

type UserMessage = EventData<"user.message">;

export interface HookedPrompt {
  /** Context from hooks about the session, emitted before the prompt. */
  readonly before: readonly UserMessage[];
  readonly prompt: UserMessage;
  /** Context from hooks about the prompt, emitted after it. */
  readonly after: readonly UserMessage[];
  /** The answer of a hook instead of the model. */
  readonly answer?: string;
}

/** Whether hooks run before a prompt is accepted. If so, its sender need not wait for them. */
export function promptIsHooked(hooks: BoundHooks | undefined, isFirst: boolean): hooks is BoundHooks {
  if (!hooks) return false;
  if (isFirst && hooks.has("sessionStart")) return true;
  return hooks.has("userPromptSubmitted") || hooks.has("userPromptTransformed");
}

/**
 * Runs the hooks for a user's prompt. Their changes affect only what the model reads; the log keeps the text as typed.
 * `source` is set for the first prompt of a process.
 */
export async function hookPrompt(
  hooks: BoundHooks,
  prompt: UserMessage,
  options: { source?: "new" | "resume"; signal: AbortSignal; form: (words: string) => Promise<string> },
): Promise<HookedPrompt> {
  const { source, signal } = options;
  const typed = prompt.transformedContent ?? prompt.content;
  let shown = typed;
  const after: UserMessage[] = [];
  let answer: string | undefined;
  if (hooks.has("userPromptSubmitted")) {
    const said = await hooks.fire("userPromptSubmitted", { prompt: typed }, signal);
    if (said.modifiedPrompt) shown = said.modifiedPrompt;
    if (said.additionalContext) after.push(fromHook("userPromptSubmitted", said.additionalContext));
    if (said.handled) answer = said.responseContent ?? "";
  }
  shown = await options.form(shown);
  if (answer === undefined && hooks.has("userPromptTransformed")) {
    const said = await hooks.fire(
      "userPromptTransformed",
      { prompt: prompt.content, transformedPrompt: shown },
      signal,
    );
    if (said.modifiedTransformedPrompt !== undefined) shown = said.modifiedTransformedPrompt;
  }
  const before: UserMessage[] = [];
  if (source !== undefined && hooks.has("sessionStart")) {
    const said = await hooks.fire("sessionStart", { source, initialPrompt: prompt.content }, signal);
    if (said.additionalContext) before.push(fromHook("sessionStart", said.additionalContext));
  }
  return {
    before,
    prompt: shown === typed ? prompt : { ...prompt, transformedContent: shown },
    after,
    ...defined({ answer }),
  };
}

/** Prefix of the `source` of messages that hooks send. */
export const HOOK_SOURCE = "hook-";

function fromHook(point: string, content: string): UserMessage {
  return { content, source: `${HOOK_SOURCE}${point}` };
}
