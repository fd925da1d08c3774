import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import type { Access } from "../../protocol/permission.ts";
import { defineTool, fixed } from "../tool.ts";
import description from "./bash.md";
import { replyResult, wentOnText } from "./reply-text.ts";
import { partialResult, shellsOf } from "./shells.ts";

const DEFAULT_WAIT_SECONDS = 30;
const MAX_WAIT_SECONDS = 600;
const MAX_INTENTION_CHARACTERS = 1000;
/** The longest wait, plus time to stop an aborted command. */
const TIMEOUT_MS = (MAX_WAIT_SECONDS + 10) * 1000;

export const bash = defineTool({
  name: "bash",
  accessKind: "shell",
  description,
  input: fixed("bash", () =>
    z.object({
      command: z.string().describe("For bash"),
      description: z.string().default("").describe("What it does, in a few words"),
      shellId: z.string().optional().describe("Keeps folder and variables"),
      mode: z.enum(["sync", "async"]).default("sync").describe("async: continues in the background"),
      detach: z.boolean().optional().describe("With async: outlives the session"),
      initial_wait: z
        .number()
        .min(0)
        .max(MAX_WAIT_SECONDS)
        .default(DEFAULT_WAIT_SECONDS)
        .describe("Seconds until background"),
      unsandboxed: z.boolean().optional().describe("Leave the sandbox, if the user agrees"),
    }),
  ),
  timeoutMs: TIMEOUT_MS,
  access({ command, description: what, unsandboxed, shellId }, { cwd }) {
    const intention = clip(what, MAX_INTENTION_CHARACTERS);
    const leave: Access = { kind: "sandbox-off", command, intention };
    const how = { ...defined({ shellId }), ...(unsandboxed === true && { unsandboxed }) };
    return [{ kind: "shell", command, cwd, intention, ...how }, ...(unsandboxed === true ? [leave] : [])];
  },
  async run(call, context) {
    const { cwd, roots, signal, toolCallId } = context;
    const detached = call.mode === "async" && call.detach === true;
    const reply = await shellsOf(context).run({
      command: call.command,
      description: clip(call.description, MAX_INTENTION_CHARACTERS),
      toolCallId,
      cwd,
      roots,
      signal,
      mode: detached ? "detached" : call.mode,
      waitMs: call.initial_wait * 1000,
      onOutput: (text) => partialResult(context, text),
      ...defined({ shellId: call.shellId }),
      ...(call.unsandboxed === true && { unsandboxed: true }),
    });
    if (reply.warning !== undefined) context.progress(reply.warning);
    const wentOn = call.mode === "sync" && reply.state === "running";
    return wentOn ? { content: wentOnText(reply, call.initial_wait) } : replyResult(reply);
  },
});
