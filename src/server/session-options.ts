/** What a client may say of a session it opens, and what the runtime makes of it. */
import { resolve } from "node:path";
import * as z from "zod";
import type { SessionRequest } from "../runtime/runtime.ts";

export const createParams = () =>
  z.object({
    sessionId: z.string().optional(),
    model: z.string().optional(),
    reasoningEffort: z.enum(["low", "medium", "high", "xhigh", "max"]).optional(),
    workingDirectory: z.string().optional(),
    streaming: z.boolean().optional(),
  });
export type CreateParams = z.infer<ReturnType<typeof createParams>>;

export const resumeParams = () => createParams().extend({ sessionId: z.string() });
export type ResumeParams = z.infer<ReturnType<typeof resumeParams>>;

export function sessionRequest(params: CreateParams, defaults: SessionRequest): SessionRequest {
  const { model, reasoningEffort, workingDirectory, streaming = false } = params;
  return {
    ...defaults,
    cwd: workingDirectory === undefined ? defaults.cwd : resolve(defaults.cwd, workingDirectory),
    streaming,
    ...(model !== undefined && { model }),
    ...(reasoningEffort !== undefined && { reasoningEffort }),
  };
}
