import type { EventData } from "../../protocol/event.ts";
import type { SessionHooks } from "./hooked-calls.ts";

type UserMessage = EventData<"user.message">;

export interface HookedPrompt {
  /** Said before the prompt: what hooks know about the session. */
  readonly before: readonly UserMessage[];
  readonly prompt: UserMessage;
  /** Said after the prompt: what hooks know about it. */
  readonly after: readonly UserMessage[];
  /** A hook has answered in the model's place. */
  readonly answer?: string;
}

/** Whether hooks are to be heard before a prompt is taken up, so that its sender need not wait for them. */
export function promptIsHooked(hooks: SessionHooks | undefined, isFirst: boolean): hooks is SessionHooks {
  if (!hooks) return false;
  if (isFirst && hooks.has("sessionStart")) return true;
  return hooks.has("userPromptSubmitted") || hooks.has("userPromptTransformed");
}

/**
 * Hears the hooks about a prompt of a person. What they change is what the model is shown; what the person typed stays
 * in the log as it was. `source` is set for the first prompt of a process.
 */
export async function hookPrompt(
  hooks: SessionHooks,
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
    ...(answer !== undefined && { answer }),
  };
}

/** Where a message that nobody typed comes from, as `source` of a user.message. */
export const HOOK_SOURCE = "hook-";

function fromHook(point: string, content: string): UserMessage {
  return { content, source: `${HOOK_SOURCE}${point}` };
}
