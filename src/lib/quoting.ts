/** Text of others inside what a model reads: it can neither open nor close a tag of ours. */
import { clip, sanitise, sanitiseLine } from "./text.ts";

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
  "user_message",
  "inbox_message",
  "consolidation_board",
  "session_turns",
  "said_by_person",
  "said_by_agent",
  "session_checkpoint",
  "latest_commits",
];

/** `<` or a character that looks like it, as it begins or ends one of our tags. */
const IMITATION = new RegExp(`[<\\uff1c\\ufe64](?=[\\s/\\uff0f]*(?:${OUR_TAGS.join("|")}))`, "gi");

const MAX_LINE_CHARACTERS = 300;

/** Words of others on one line of ours, cut where it gets long: they can open or close no tag and end no quotation. */
export function quotedLine(text: string): string {
  return clip(sanitiseLine(text).replace(/\s+/g, " "), MAX_LINE_CHARACTERS)
    .replaceAll("&", "&amp;")
    .replace(/[<\uff1c\ufe64]/g, "&lt;")
    .replace(/[>\uff1e\ufe65]/g, "&gt;")
    .replaceAll('"', "'");
}

/** The same text, in which nothing is hidden and none of our tags begins or ends. */
export function quoted(text: string): string {
  return sanitise(text).replace(IMITATION, "&lt;");
}
