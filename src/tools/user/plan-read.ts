import * as z from "zod";
import { quoted } from "../../lib/quoting.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./plan-read.md";

const PAGE_CHARACTERS = 16_000;

/** For coordinated workers, which cannot open the session folder. */
export const planRead = defineTool({
  name: "plan_read",
  description,
  input: fixed("plan_read", () =>
    z.object({ offset: z.int().min(0).default(0).describe("First character of the page, from 0") }),
  ),
  readOnly: true,
  async run({ offset }, { knowledge }) {
    if (knowledge === undefined) throw new ToolError("This session has no plan to read. Continue without it.");
    const plan = quoted(await knowledge.plan());
    if (plan.trim() === "") return { content: "This session has no plan." };
    if (offset >= plan.length) {
      throw new ToolError(`The plan has ${plan.length} characters. Use a smaller offset than ${offset}.`);
    }
    const end = offset + PAGE_CHARACTERS;
    const more = end < plan.length ? `\n[${plan.length - end} more characters: call plan_read with offset ${end}]` : "";
    return { content: `${plan.slice(offset, end)}${more}` };
  },
});
