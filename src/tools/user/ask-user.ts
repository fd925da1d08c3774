import * as z from "zod";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./ask-user.md";
import { PERSON_TIMEOUT_MS } from "./user.ts";

const MAX_QUESTION_CHARACTERS = 10_000;
const MAX_CHOICES = 20;
const MAX_ANSWER_CHARACTERS = 20_000;
export const UNAVAILABLE =
  "No user can answer now. Choose what is most likely wanted and cheapest to undo, continue, and state the assumption in your answer.";

export const askUser = defineTool({
  name: "ask_user",
  description,
  input: fixed("ask_user", () =>
    z.object({
      question: z.string().trim().min(1).max(MAX_QUESTION_CHARACTERS).describe("The question"),
      choices: z.array(z.string().min(1).max(500)).max(MAX_CHOICES).optional().describe("Answers to choose from"),
      allow_freeform: z.boolean().default(true).describe("Whether the user may answer freely instead of choosing"),
    }),
  ),
  readOnly: true,
  needs: "user_input",
  timeoutMs: PERSON_TIMEOUT_MS,
  async run({ question, choices = [], allow_freeform }, { user, signal, toolCallId }: ToolContext) {
    const asked = {
      question,
      toolCallId,
      // Without choices, free text is the only way to answer.
      allowFreeform: allow_freeform || choices.length === 0,
      ...(choices.length > 0 && { choices }),
    };
    const reply = (await user?.ask(asked, signal)) ?? "unavailable";
    if (reply === "unavailable") throw new ToolError(UNAVAILABLE);
    const answer = reply.answer.slice(0, MAX_ANSWER_CHARACTERS);
    return { content: reply.wasFreeform ? `User responded: ${answer}` : `User selected: ${answer}` };
  },
});
