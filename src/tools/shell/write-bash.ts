import * as z from "zod";
import type { Access } from "../../protocol/permission.ts";
import { defineTool, fixed } from "../tool.ts";
import { replyResult } from "./reply-text.ts";
import { delaySeconds, shellsOf, waitTimeoutMs } from "./shells.ts";
import description from "./write-bash.md";

const MAX_INPUT_CHARACTERS = 100_000;

export const writeBash = defineTool({
  name: "write_bash",
  companionOf: "bash",
  modes: ["interactive", "autopilot"],
  description,
  input: fixed("write_bash", () =>
    z.object({
      shellId: z.string().min(1).describe("Of a bash call"),
      input: z.string().min(1).max(MAX_INPUT_CHARACTERS).describe("Text and keys"),
      delay: delaySeconds(),
    }),
  ),
  timeoutMs: waitTimeoutMs,
  // Text typed into a running shell runs there, so it is checked like a command.
  access({ input: command, shellId }, { shells, cwd, toolCallId }) {
    const intention = `Type into the running shell ${shellId}`;
    const leaves = shells?.leavesSandbox({ shellId, toolCallId }) ?? false;
    const leave: Access = { kind: "sandbox-off", command, intention };
    const how = { shellId, ...(leaves && { unsandboxed: true }) };
    return [{ kind: "shell", command, cwd, intention, ...how }, ...(leaves ? [leave] : [])];
  },
  async run({ shellId, input, delay }, context) {
    const { signal, toolCallId } = context;
    const reply = await shellsOf(context).write({ shellId, input, waitMs: delay * 1000, signal, toolCallId });
    if (reply.warning !== undefined) context.progress(reply.warning);
    return replyResult(reply);
  },
});
