import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./memory-read.md";

/** For coordinated workers: the same facts that the main agent has in its system prompt. */
export const memoryRead = defineTool({
  name: "memory_read",
  description,
  input: fixed("memory_read", () => z.object({})),
  readOnly: true,
  async run(_input, { knowledge }) {
    if (knowledge === undefined) throw new ToolError("This session has no memory to read. Continue without it.");
    return { content: knowledge.memory().trim() || "No facts are stored, or memory is off in this session." };
  },
});
