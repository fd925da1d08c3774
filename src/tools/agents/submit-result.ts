import * as z from "zod";
import type { Desk } from "../subagents/desk.ts";
import { Submission } from "../subagents/submission.ts";
import { defineTool, type Tool } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./submit-result.md";

/** Returns the tool for one worker. The input is not validated here: the desk handles invalid results. */
export function submitResultTool(desk: Desk): Tool {
  const tool = defineTool({
    name: "submit_result",
    description,
    input: z.unknown(),
    readOnly: true,
    exclusive: true,
    terminal: true,
    async run(payload) {
      const { kind, message } = desk.submit(payload);
      if (kind === "returned") throw new ToolError(message);
      return { content: message };
    },
  });
  const { $schema: _, ...parameters } = z.toJSONSchema(Submission, { io: "input" });
  return { ...tool, parameters };
}
