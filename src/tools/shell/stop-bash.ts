import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import { replyResult } from "./reply-text.ts";
import { shellsOf } from "./shells.ts";
import description from "./stop-bash.md";

export const stopBash = defineTool({
  name: "stop_bash",
  companionOf: "bash",
  description,
  input: fixed("stop_bash", () => z.object({ shellId: z.string().min(1).describe("Of a bash call") })),
  async run({ shellId }, context) {
    return replyResult(await shellsOf(context).stop(shellId));
  },
});
