/** Text of others inside what a model reads: it can neither open nor close a tag of ours. */
import { sanitise } from "./text.ts";

const OUR_TAGS = [
  "instruction_file",
  "instruction_discovered",
  "custom_instructions",
  "agent_instructions",
  "code_change_instructions",
  "environment_context",
  "system_notification",
  "system_reminder",
  "skill-context",
  "reminder",
  "current_datetime",
  "tagged_files",
  "ide_selection",
  "github_references",
  "tools_changed_notice",
  "session_limits_status",
  "agent_message",
  "dynamic_context_board",
  "board_item",
];

/** `<` or a character that looks like it, as it begins or ends one of our tags. */
const IMITATION = new RegExp(`[<\\uff1c\\ufe64](?=[\\s/\\uff0f]*(?:${OUR_TAGS.join("|")}))`, "gi");

/** The same text, in which nothing is hidden and none of our tags begins or ends. */
export function quoted(text: string): string {
  return sanitise(text).replace(IMITATION, "&lt;");
}
