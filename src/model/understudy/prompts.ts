/** Finds the user's own prompts among the messages with the user role, some of which the runtime wrote. */
import type { Message } from "../../protocol/message.ts";
import { cutLine, findBlock, withoutBlocks } from "./bounds.ts";
import { asksSomething } from "./intent.ts";

export interface Prompts {
  /** Oldest first, without the blocks that the runtime added. */
  readonly prompts: readonly string[];
  /** All messages after the last prompt. */
  readonly since: readonly Message[];
}

export function promptsIn(messages: readonly Message[]): Prompts {
  const prompts: string[] = [];
  let last = -1;
  /** The last prompt while it has no answer. */
  let open: string | undefined;
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant" && message.calls.length === 0) open = undefined;
    if (message.role !== "user") continue;
    const prompt = ownWords(message.content);
    if (prompt === "" || isReminder(prompt) || isContext(prompt, open)) continue;
    prompts.push(prompt);
    open = prompt;
    last = index;
  }
  return { prompts, since: messages.slice(last + 1) };
}

const TAGGED = ["tagged_files"];
const WRAPPED =
  "current_datetime reminder system_reminder system_notification agent_instructions skill-context session_limits_status tools_changed_notice github_references ide_selection".split(
    " ",
  );
/** Tags that others may write too. They count as the runtime's only at the beginning of a message. */
const LEADING = "instruction_discovered instruction_file custom_instructions environment_context skill".split(" ");

/** Beginnings of messages that make an agent continue. They ask for nothing new. */
const REMINDERS = [
  "You stopped, but the task is not marked complete:",
  "You called `task_complete`, but the check that decides about it failed",
  "Go on: the work is not finished.",
  "The research is not thorough yet:",
  "The report is not there. Write it now",
];

function isReminder(prompt: string): boolean {
  return REMINDERS.some((beginning) => prompt.startsWith(beginning));
}

/** Text from hooks has no tag. While a question is unanswered, a message that asks nothing counts as such text. */
function isContext(prompt: string, open: string | undefined): boolean {
  return open !== undefined && asksSomething(open) && !asksSomething(prompt);
}

/** Returns the user's words. Attached files count as named by the user. */
function ownWords(content: string): string {
  const attached = findBlock(content, TAGGED)?.body ?? "";
  const words = withoutBlocks(withoutBlocks(withoutLeading(content), TAGGED), WRAPPED).trim();
  const paths = attached
    .split("\n")
    .flatMap((row) => (row.startsWith("* ") ? [cutLine(row.slice(2)).replace(/ \([^()]*\)$/, "")] : []));
  return paths.length === 0 ? words : `${words} ${paths.join(" ")}`.trim();
}

function withoutLeading(content: string): string {
  let rest = content.trimStart();
  for (let block = findBlock(rest, LEADING); block?.start === 0; block = findBlock(rest, LEADING)) {
    rest = rest.slice(block.end).trimStart();
  }
  return rest;
}
