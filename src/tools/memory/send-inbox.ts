import * as z from "zod";
import { defineTool, type Tool } from "../tool.ts";
import { type InboxSender, MAX_CONTENT_CHARACTERS, MAX_SUMMARY_CHARACTERS } from "./inbox.ts";
import description from "./send-inbox.md";

/** Returns the tool for one sidekick. When no further sends are allowed, the call ends its run. */
export function sendInboxTool(inbox: InboxSender): Tool {
  return defineTool({
    name: "send_inbox",
    description,
    input: z.object({
      summary: words(MAX_SUMMARY_CHARACTERS).describe("One line: what it is, and why it matters now"),
      content: words(MAX_CONTENT_CHARACTERS).describe("The full text, with the source of each part"),
    }),
    endsAnswer: inbox.maxSends === 1,
    async run(message, { signal }) {
      return { content: `Sent as ${await inbox.send(message, signal)}.` };
    },
  });
}

const words = (most: number) =>
  z
    .string()
    .max(most)
    .refine((text) => text.trim() !== "", "it is empty");
