import type { Stamp } from "../../lib/stamp.ts";
import type { EventData } from "../../protocol/event.ts";
import type { SessionLog } from "../../store/store.ts";
import { withAttachments } from "../attachments.ts";

export interface PromptForm {
  readonly stamp: Stamp;
  readonly log: Pick<SessionLog, "readAsset">;
  /** Say with each prompt when it was taken up. */
  readonly datesPrompts?: boolean;
}

/** What the model reads of a prompt: when it was said, the words as they are, and what is attached. */
export async function formed(
  words: string,
  attachments: EventData<"user.message">["attachments"],
  { stamp, log, datesPrompts }: PromptForm,
): Promise<string> {
  const shown = attachments?.length ? await withAttachments(words, attachments, log) : words;
  return datesPrompts ? `<current_datetime>${date(stamp)}</current_datetime>\n\n${shown}` : shown;
}

const date = (stamp: Stamp): string => new Date(stamp.now()).toISOString();

/** A prompt that nobody else has a say about. */
export async function shownAs(
  prompt: EventData<"user.message">,
  form: (words: string) => Promise<string>,
): Promise<EventData<"user.message">> {
  const words = prompt.transformedContent ?? prompt.content;
  const shown = await form(words);
  return shown === words ? prompt : { ...prompt, transformedContent: shown };
}
