/** `ask_user` for clients that show forms: several fields at once instead of one question. */
import * as z from "zod";
import { formDefaults } from "../../lib/form-fields.ts";
import { clip } from "../../lib/text.ts";
import type { ToolContext } from "../tool.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { UNAVAILABLE } from "./ask-user.ts";
import description from "./ask-user-form.md";
import { PERSON_TIMEOUT_MS } from "./user.ts";

const MAX_MESSAGE_CHARACTERS = 10_000;
const MAX_FIELDS = 20;
const MAX_SCHEMA_CHARACTERS = 50_000;
const MAX_ANSWER_CHARACTERS = 20_000;

const field = () =>
  z.looseObject({
    type: z.enum(["string", "number", "integer", "boolean", "array"]).describe("Type of the answer"),
    title: z.string().optional().describe("Label of the field"),
    description: z.string().optional().describe("What the field is for"),
  });

export const askUserForm = defineTool({
  name: "ask_user",
  description,
  input: fixed("ask_user_form", () =>
    z.object({
      message: z.string().trim().min(1).max(MAX_MESSAGE_CHARACTERS).describe("What the form is about"),
      requestedSchema: z
        .object({
          type: z.literal("object"),
          properties: z.record(z.string(), field()).describe("The fields, by name"),
          required: z.array(z.string()).optional().describe("Fields that must be filled in"),
        })
        .describe("JSON schema of the form: an object with flat fields"),
    }),
  ),
  readOnly: true,
  needs: "elicitation",
  timeoutMs: PERSON_TIMEOUT_MS,
  async run({ message, requestedSchema }, { user, signal, toolCallId }: ToolContext) {
    const fields = Object.keys(requestedSchema.properties).length;
    if (fields === 0 || fields > MAX_FIELDS) throw new ToolError(`A form has 1 to ${MAX_FIELDS} fields.`);
    if (JSON.stringify(requestedSchema).length > MAX_SCHEMA_CHARACTERS) throw new ToolError("The form is too large.");
    const reply = (await user?.askForm?.({ message, requestedSchema, toolCallId }, signal)) ?? "unavailable";
    if (reply === "unavailable") throw new ToolError(UNAVAILABLE);
    if (reply.action === "decline") return { content: "The user declined to answer." };
    if (reply.action === "cancel") return { content: "The user dismissed the form without an answer." };
    const answer = clip(JSON.stringify({ ...formDefaults(requestedSchema), ...reply.content }), MAX_ANSWER_CHARACTERS);
    return { content: `User responded: ${answer}` };
  },
});
