/** Model options that a client may set for a session, and their conversion for the runtime. */
import * as z from "zod";
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

/** `getToken` is called before each request to a provider that needs it. */
export function modelRequest(
  params: ModelParams,
  getToken: (providerName: string) => Promise<string>,
): Partial<SessionRequest> {
  const { model, reasoningEffort, reasoningSummary, modelCapabilities, clientName, gitHubToken } = params;
  const { provider, providers, models } = params;
  const credits = params.sessionLimits?.maxAiCredits;
  const brings = provider !== undefined || providers !== undefined || models !== undefined;
  return {
    // A client that does not stream receives the whole reply.
    replies: "whole",
    datesPrompts: true,
    ...(brings && { providers: { provider, providers, models, getToken } }),
    ...(model !== undefined && { model }),
    ...(reasoningEffort !== undefined && { reasoningEffort }),
    ...(reasoningSummary !== undefined && { reasoningSummary }),
    ...(modelCapabilities && { modelCapabilities }),
    ...(clientName !== undefined && { clientName }),
    ...(gitHubToken && { githubToken: gitHubToken }),
    ...(params.capi?.enableWebSocketResponses === false && { githubSockets: false }),
    ...(params.enableCitations && { citations: true }),
    ...(credits !== undefined && { credits }),
  };
}
