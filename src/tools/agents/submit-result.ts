import * as z from "zod";
import type { ResultReceiver } from "../coordination/result-receiver.ts";
import { Submission } from "../coordination/submission.ts";
import { defineTool, type Tool } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./submit-result.md";

/** Returns the tool for one worker. The input is not validated here: the receiver handles invalid results. */
export function submitResultTool(receiver: ResultReceiver): Tool {
  const tool = defineTool({
    name: "submit_result",
    description,
    input: z.unknown(),
    readOnly: true,
    exclusive: true,
    endsAnswer: true,
    async run(payload) {
      const { kind, message } = receiver.submit(payload);
      if (kind === "returned") throw new ToolError(message);
      return { content: message };
    },
  });
  const { $schema: _, ...parameters } = z.toJSONSchema(Submission, { io: "input" });
  return { ...tool, parameters };
}
