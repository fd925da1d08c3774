import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import description from "./task-complete.md";

const MAX_SUMMARY_CHARACTERS = 20_000;

export const taskComplete = defineTool({
  name: "task_complete",
  mainOnly: true,
  modes: ["autopilot"],
  description,
  input: fixed("task_complete", () =>
    z.object({
      summary: z
        .string()
        .max(MAX_SUMMARY_CHARACTERS)
        .optional()
        .describe("What was done and how it was checked, in a few sentences for the user"),
    }),
  ),
  readOnly: true,
  exclusive: true,
  endsAnswer: true,
  async run({ summary }) {
    return {
      content: summary === undefined || summary === "" ? "Task complete." : summary,
      taskComplete: summary === undefined ? {} : { summary },
    };
  },
});
