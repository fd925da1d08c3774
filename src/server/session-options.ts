/** What a client may say of a session it opens, and what the runtime makes of it. */
import { resolve } from "node:path";
import * as z from "zod";
import { SystemMessageConfig } from "../context/system-message.ts";
import type { SessionRequest } from "../runtime/runtime.ts";
import type { ClientProfile } from "./clients.ts";
import { modelParams } from "./model-options.ts";

const ToolDefinition = () =>
  z.object({
    name: z.string().min(1),
    description: z.string().exactOptional(),
    parameters: z.record(z.string(), z.unknown()).exactOptional(),
    overridesBuiltInTool: z.boolean().exactOptional(),
    skipPermission: z.boolean().exactOptional(),
    isTerminal: z.boolean().exactOptional(),
    defer: z.enum(["auto", "never"]).exactOptional(),
  });

export const createParams = () =>
  modelParams().extend({
    sessionId: z.string().optional(),
    workingDirectory: z.string().optional(),
    streaming: z.boolean().optional(),
    systemMessage: SystemMessageConfig.optional(),
    tools: z.array(ToolDefinition()).optional(),
    commands: z.array(z.object({ name: z.string().min(1), description: z.string().optional() })).optional(),
    hooks: z.boolean().optional(),
    requestPermission: z.boolean().optional(),
    requestUserInput: z.boolean().optional(),
    requestElicitation: z.boolean().optional(),
    requestExitPlanMode: z.boolean().optional(),
    includeSubAgentStreamingEvents: z.boolean().optional(),
  });
export type CreateParams = z.infer<ReturnType<typeof createParams>>;

export const resumeParams = () =>
  createParams().extend({
    sessionId: z.string(),
    disableResume: z.boolean().optional(),
    continuePendingWork: z.boolean().optional(),
  });
export type ResumeParams = z.infer<ReturnType<typeof resumeParams>>;

/** Options of the session itself; the rest is the client's own and changes with it. */
export function sessionRequest(params: CreateParams, defaults: SessionRequest): SessionRequest {
  const { workingDirectory, streaming = false, systemMessage } = params;
  return {
    ...defaults,
    cwd: workingDirectory === undefined ? defaults.cwd : resolve(defaults.cwd, workingDirectory),
    streaming,
    // Clients decide about everything that no rule decides, reading included.
    permissions: { askReads: true, ...defaults.permissions },
    ...(systemMessage && { systemMessage }),
  };
}

export function clientProfile(params: CreateParams): ClientProfile {
  const { tools, commands, systemMessage } = params;
  return {
    tools,
    commands,
    hooks: params.hooks ?? false,
    requestUserInput: params.requestUserInput ?? false,
    requestElicitation: params.requestElicitation ?? false,
    requestExitPlanMode: params.requestExitPlanMode ?? false,
    subAgentDeltas: params.includeSubAgentStreamingEvents ?? true,
    transforms:
      systemMessage?.mode === "customize" &&
      Object.values(systemMessage.sections ?? {}).some(({ action }) => action === "transform"),
  };
}
