/** Finds what the user said among the messages with the user's role, some of which the runtime wrote. */
import type { Message } from "../../protocol/message.ts";
import { cutLine, findBlock, withoutBlocks } from "./bounds.ts";

export interface Prompts {
  /** Oldest first, without what the runtime wrapped around them. */
  readonly prompts: readonly string[];
  /** Everything after the last prompt. */
  readonly since: readonly Message[];
}

export function promptsIn(messages: readonly Message[]): Prompts {
  const prompts: string[] = [];
  let last = -1;
  for (const [index, message] of messages.entries()) {
    if (message.role !== "user") continue;
    const prompt = ownWords(message.content);
    if (prompt === "") continue;
    prompts.push(prompt);
    last = index;
  }
  return { prompts, since: messages.slice(last + 1) };
}

const TAGGED = ["tagged_files"];
const WRAPPED =
  "current_datetime reminder system_reminder system_notification agent_instructions skill-context session_limits_status tools_changed_notice github_references ide_selection".split(
    " ",
  );

/** Attached files count as named by the user. */
function ownWords(content: string): string {
  const attached = findBlock(content, TAGGED)?.body ?? "";
  const words = withoutBlocks(withoutBlocks(content, TAGGED), WRAPPED).trim();
  const paths = attached
    .split("\n")
    .flatMap((row) => (row.startsWith("* ") ? [cutLine(row.slice(2)).replace(/ \([^()]*\)$/, "")] : []));
  return paths.length === 0 ? words : `${words} ${paths.join(" ")}`.trim();
}
