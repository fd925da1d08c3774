import { defined } from "../../lib/defined.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { PromptAndTools } from "../session-model.ts";
import type { BoundHooks } from "./hooked-calls.ts";
import { type HookedPrompt, hookPrompt, promptIsHooked } from "./hooked-prompt.ts";
import { type PendingMessage, userMessage } from "./pending-messages.ts";
import { formPrompt, type PromptForm, shownAs } from "./prompt-form.ts";
import type { SessionPreamble } from "./session-preamble.ts";

interface AcceptedPrompt {
  readonly emit: Emit;
  readonly hooks: BoundHooks | undefined;
  readonly promptAndTools: PromptAndTools;
  readonly preamble: SessionPreamble;
  readonly model: string;
  /** Set for the first message that this process accepts. */
  readonly source: "new" | "resume" | undefined;
  readonly delivery: "idle" | "queued";
  readonly signal: AbortSignal;
  readonly form: PromptForm;
  /** Emits waiting notices. They come before the message, which may refer to them. */
  deliverNotices(emit: Emit): Promise<void>;
  /** Emitted after the prompt: the remaining session limits. */
  readonly status: EventData<"user.message"> | undefined;
}

/** Whether accepting a message may take long. If so, it is stored and acknowledged first. */
export function takesTime({
  promptAndTools,
  hooks,
  source,
}: Pick<AcceptedPrompt, "promptAndTools" | "hooks" | "source">): boolean {
  return (promptAndTools.ready !== undefined && !promptAndTools.isQuick) || promptIsHooked(hooks, source !== undefined);
}

/**
 * Puts a message into the log, with the session's preamble and the output of hooks. Returns the answer if a hook has
 * given one instead of the model.
 */
export async function acceptPrompt(message: PendingMessage, parts: AcceptedPrompt): Promise<string | undefined> {
  const { emit, promptAndTools, preamble, model, signal } = parts;
  await awaitUnlessAborted(promptAndTools.ready?.(signal), signal);
  const hookedPrompt = message.notice ? undefined : await runPromptHooks(userMessage(message, parts.delivery), parts);
  preamble.before(emit, { model, promptAndTools });
  await parts.deliverNotices(emit);
  if (message.notice) await emit("system.notification", message.notice);
  if (!hookedPrompt) return undefined;
  for (const context of hookedPrompt.before) void emit("user.message", context);
  await emit("user.message", hookedPrompt.prompt);
  for (const context of hookedPrompt.after) await emit("user.message", context);
  if (parts.status) await emit("user.message", parts.status);
  return hookedPrompt.answer;
}

/** Runs the hooks. If the user aborts meanwhile, the prompt is logged unchanged. */
async function runPromptHooks(prompt: EventData<"user.message">, parts: AcceptedPrompt): Promise<HookedPrompt> {
  const { hooks, source, signal } = parts;
  const form = (words: string): Promise<string> => formPrompt(words, prompt.attachments, parts.form);
  const plain = async (): Promise<HookedPrompt> => ({ before: [], prompt: await shownAs(prompt, form), after: [] });
  if (!promptIsHooked(hooks, source !== undefined)) return plain();
  try {
    return await hookPrompt(hooks, prompt, { signal, form, ...defined({ source }) });
  } catch (error) {
    if (signal.aborted) return plain();
    throw error;
  }
}

export async function awaitUnlessAborted(work: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  if (!work) return;
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
