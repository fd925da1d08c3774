import * as z from "zod";
import { clip } from "../../lib/text.ts";
import { defineTool, type Tool, toolMaker } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { asToolError, checkedFirst, type MemoryPort } from "./store-memory.ts";
import description from "./vote-memory.md";

const MAX_DESCRIPTION = 1200;

const traits = { name: "vote_memory", accessKind: "memory", mainOnly: true } as const;

export const voteMemoryTool = toolMaker(traits, make);

function make(memory: MemoryPort): Tool {
  const { limits, descriptions } = memory;
  const input = z.object({
    fact: z.string().min(1).max(limits.fact).describe("The exact words of the fact"),
    direction: z.enum(["upvote", "downvote"]).describe("Right and useful, or wrong or out of date"),
    reason: z.string().min(1).max(limits.reason).describe("The evidence for or against it"),
  });
  const tool = defineTool({
    ...traits,
    description: clip(descriptions.vote ?? description.trim(), MAX_DESCRIPTION),
    input,
    access: ({ fact, direction, reason }) => ({ kind: "memory", action: "vote", fact, direction, reason }),
    async run(vote, { toolCallId, signal }) {
      await memory.vote(vote, { toolCallId, signal }).catch(asToolError);
      return { content: `Your ${vote.direction} is counted.` };
    },
  });
  return checkedFirst(tool, memory, (given) => {
    const parsed = input.safeParse(given);
    if (!parsed.success) throw new ToolError(`Invalid inputs: ${z.prettifyError(parsed.error)}`);
    if (!memory.canVote) throw new ToolError("This memory does not take votes.");
  });
}
