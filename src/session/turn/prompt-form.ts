import type { Stamp } from "../../lib/stamp.ts";
import type { EventData } from "../../protocol/event.ts";
import type { SessionLog } from "../../store/store.ts";
import { withAttachments } from "../attachments.ts";

export interface PromptForm {
  readonly stamp: Stamp;
  readonly log: Pick<SessionLog, "readAsset">;
  /** Add the time of acceptance to each prompt. */
  readonly datesPrompts?: boolean | undefined;
}

/** Returns the prompt as the model reads it: its time, its text and its attachments. */
export async function formPrompt(
  words: string,
  attachments: EventData<"user.message">["attachments"],
  { stamp, log, datesPrompts }: PromptForm,
): Promise<string> {
  const shown = attachments?.length ? await withAttachments(words, attachments, log) : words;
  return datesPrompts ? `<current_datetime>${date(stamp)}</current_datetime>\n\n${shown}` : shown;
}

const date = (stamp: Stamp): string => new Date(stamp.now()).toISOString();

/** Returns a prompt without changes by hooks. */
export async function shownAs(
  prompt: EventData<"user.message">,
  form: (words: string) => Promise<string>,
): Promise<EventData<"user.message">> {
  const words = prompt.transformedContent ?? prompt.content;
  const shown = await form(words);
  return shown === words ? prompt : { ...prompt, transformedContent: shown };
}
