import type { Emit, EventData } from "../../protocol/event.ts";
import type { PromptAndTools } from "../session-model.ts";
import type { SessionHooks } from "./hooked-calls.ts";
import { type HookedPrompt, hookPrompt, promptIsHooked } from "./hooked-prompt.ts";
import { type Incoming, userMessage } from "./pending-messages.ts";
import { formed, type PromptForm, shownAs } from "./prompt-form.ts";
import type { SessionPreamble } from "./session-preamble.ts";

interface AcceptedPrompt {
  readonly emit: Emit;
  readonly hooks: SessionHooks | undefined;
  readonly offer: PromptAndTools;
  readonly introduction: SessionPreamble;
  readonly model: string;
  /** Set for the first message this process takes up. */
  readonly source: "new" | "resume" | undefined;
  readonly delivery: "idle" | "queued";
  readonly signal: AbortSignal;
  readonly form: PromptForm;
  /** Emits the notices that wait: they belong before the words that may be about them. */
  deliverNotices(emit: Emit): Promise<void>;
  /** Said behind the prompt: what is left to the session. */
  readonly status: EventData<"user.message"> | undefined;
}

/** Whether taking up a message may keep its sender waiting: then it is kept and accepted before. */
export function takesTime({ offer, hooks, source }: Pick<AcceptedPrompt, "offer" | "hooks" | "source">): boolean {
  return (offer.ready !== undefined && !offer.isQuick) || promptIsHooked(hooks, source !== undefined);
}

/**
 * Puts a message into the log, with everything a reader must know around it and what hooks have to say about it.
 * Returns the answer when a hook has given one in the model's place.
 */
export async function acceptPrompt(message: Incoming, parts: AcceptedPrompt): Promise<string | undefined> {
  const { emit, offer, introduction, model, signal } = parts;
  await untilAborted(offer.ready?.(signal), signal);
  const said = message.notice ? undefined : await hooked(userMessage(message, parts.delivery), parts);
  introduction.before(emit, { model, offer });
  await parts.deliverNotices(emit);
  if (message.notice) await emit("system.notification", message.notice);
  if (!said) return undefined;
  for (const context of said.before) void emit("user.message", context);
  await emit("user.message", said.prompt);
  for (const context of said.after) await emit("user.message", context);
  if (parts.status) await emit("user.message", parts.status);
  return said.answer;
}

/** Who gives up while hooks think has still said what they said. */
async function hooked(prompt: EventData<"user.message">, parts: AcceptedPrompt): Promise<HookedPrompt> {
  const { hooks, source, signal } = parts;
  const form = (words: string): Promise<string> => formed(words, prompt.attachments, parts.form);
  const plain = async (): Promise<HookedPrompt> => ({ before: [], prompt: await shownAs(prompt, form), after: [] });
  if (!promptIsHooked(hooks, source !== undefined)) return plain();
  try {
    return await hookPrompt(hooks, prompt, { signal, form, ...(source && { source }) });
  } catch (error) {
    if (signal.aborted) return plain();
    throw error;
  }
}

export async function untilAborted(work: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  if (!work) return;
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
