import * as z from "zod";
import { defineTool, fixed } from "../tool.ts";
import description from "./read-bash.md";
import { replyResult } from "./reply-text.ts";
import { delaySeconds, shellsOf, waitTimeoutMs } from "./shells.ts";

export const readBash = defineTool({
  name: "read_bash",
  companionOf: "bash",
  forReadOnlyAgents: true,
  description,
  input: fixed("read_bash", () =>
    z.object({ shellId: z.string().min(1).describe("Of a bash call"), delay: delaySeconds() }),
  ),
  timeoutMs: waitTimeoutMs,
  async run({ shellId, delay }, context) {
    const reply = await shellsOf(context).read({ shellId, waitMs: delay * 1000, signal: context.signal });
    return replyResult(reply);
  },
});
