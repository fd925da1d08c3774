/** Model options that a client may set for a session, and their conversion for the runtime. */
import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { GivenModel, GivenProvider, ModelCapabilities, NamedProvider } from "../../model/given-providers.ts";
import type { SessionRequest } from "../../runtime/session-request.ts";

export const modelParams = () =>
  z.object({
    model: z.string().optional(),
    reasoningEffort: z.enum(["low", "medium", "high", "xhigh", "max"]).optional(),
    reasoningSummary: z.enum(["none", "concise", "detailed"]).optional(),
    modelCapabilities: ModelCapabilities.optional(),
    provider: GivenProvider.optional(),
    providers: z.array(NamedProvider).optional(),
    models: z.array(GivenModel).optional(),
    clientName: z.string().optional(),
    gitHubToken: z.string().optional(),
    capi: z.object({ enableWebSocketResponses: z.boolean().optional(), autoTier: z.string().optional() }).optional(),
    enableCitations: z.boolean().optional(),
    sessionLimits: z.object({ maxAiCredits: z.number().nonnegative().optional() }).nullish(),
  });
type ModelParams = z.infer<ReturnType<typeof modelParams>>;

/** Adds the client's model options. `getToken` is called before each request to a provider that needs it. */
export function withModelOptions(
  request: SessionRequest,
  params: ModelParams,
  getToken: (providerName: string) => Promise<string>,
): SessionRequest {
  const { provider, providers, models } = params;
  const brings = provider !== undefined || providers !== undefined || models !== undefined;
  const model = defined({
    name: params.model,
    reasoningEffort: params.reasoningEffort,
    reasoningSummary: params.reasoningSummary,
    capabilities: params.modelCapabilities,
    providers: brings ? { provider, providers, models, getToken } : undefined,
    githubSockets: params.capi?.enableWebSocketResponses === false ? false : undefined,
    citations: params.enableCitations || undefined,
  });
  const client = defined({ name: params.clientName, githubToken: params.gitHubToken || undefined });
  return {
    ...request,
    // A client that does not stream receives the whole reply.
    model: { ...request.model, replies: "whole", ...model },
    context: { ...request.context, datesPrompts: true },
    client: { ...request.client, ...client },
    limits: { ...request.limits, ...defined({ credits: params.sessionLimits?.maxAiCredits }) },
  };
}
