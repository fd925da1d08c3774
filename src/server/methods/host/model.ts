/** The model of a session: the current one, the available ones, and providers that are added. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { GivenModel, ModelCapabilities, NamedProvider } from "../../../model/given-providers.ts";
import type { ModelRow } from "../../../model/list-models.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import { type ModelSelection, modelName } from "../../../session/model-selection.ts";
import type { Session } from "../../../session/session.ts";
import { unusedParams, warnWithoutEffect } from "../../sessions/unused-options.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const effort = () => z.enum(["low", "medium", "high", "xhigh", "max"]);

const unusedOfModel = () => {
  const { autoTier, contextTier, verbosity } = unusedParams();
  return { autoTier, contextTier, verbosity };
};

export const modelMethods: MethodTable = {
  "session.model.getCurrent": sessionMethod(nothing, (_, { session }) => {
    const { current, reasoningEffort } = modelSelectionOf(session);
    const modelId = modelName(current);
    return { ...(modelId !== "" && { modelId }), ...defined({ reasoningEffort }) };
  }),
  "session.model.switchTo": sessionMethod(
    () => ({
      modelId: z.string().min(1),
      reasoningEffort: effort().exactOptional(),
      reasoningSummary: z.enum(["none", "concise", "detailed"]).exactOptional(),
      modelCapabilities: ModelCapabilities.exactOptional(),
      ...unusedOfModel(),
    }),
    async ({ modelId, modelCapabilities, reasoningEffort, reasoningSummary, ...unused }, { session, hosted }) => {
      const selection = modelSelectionOf(session);
      warnWithoutEffect(session, unused);
      const change = defined({ reasoningEffort, reasoningSummary });
      await selection.select(modelId, {
        ...change,
        source: "sdk",
        ...defined({ capabilities: modelCapabilities }),
      });
      // Keeps the model when the session is reopened.
      hosted.options = { ...hosted.options, model: modelId, ...change, ...defined({ modelCapabilities }) };
      return { modelId: modelName(selection.current), ...(session.queue.isWorking && { deferred: true }) };
    },
  ),
  "session.model.setReasoningEffort": sessionMethod(
    () => ({ reasoningEffort: effort() }),
    async ({ reasoningEffort }, { session, hosted }) => {
      await modelSelectionOf(session).change({ reasoningEffort, source: "sdk" });
      hosted.options = { ...hosted.options, reasoningEffort };
      return { reasoningEffort };
    },
  ),
  "session.model.list": sessionMethod(nothing, async (_, { session }) => ({
    list: (await modelSelectionOf(session).list()).filter(({ usable }) => usable).map(modelInfo),
  })),
  "session.provider.add": sessionMethod(
    () => ({ providers: z.array(NamedProvider).default([]), models: z.array(GivenModel).default([]) }),
    async ({ providers, models }, { session, hosted }) => {
      const getToken = (name: string): Promise<string> => hosted.clients.token(name);
      const added = await modelSelectionOf(session).add({ providers, models, getToken });
      const { options } = hosted;
      hosted.options = {
        ...options,
        providers: [...(options.providers ?? []), ...providers],
        models: [...(options.models ?? []), ...models],
      };
      return { models: added.map(modelInfo) };
    },
  ),
  "session.provider.sync": sessionMethod(
    () => ({ providers: z.array(NamedProvider).default([]), models: z.array(GivenModel).default([]) }),
    async ({ providers, models }, { hub, hosted }) => {
      if (hosted.isBusy) throw new TroupeError("usage", "The session is busy. Try again when it is idle.");
      const refs = models.map(({ provider, id }) => `${provider}/${id}`);
      const { model, models: before = [] } = hosted.options;
      const isGiven = (name: string) => (one: { provider: string; id: string }) =>
        name === one.id || name === `${one.provider}/${one.id}`;
      const isWithdrawn = model !== undefined && before.some(isGiven(model)) && !models.some(isGiven(model));
      if (isWithdrawn) {
        const { model: _, ...rest } = hosted.options;
        hosted.options = rest;
        await hosted.session.record.emit("session.model_deselected", {
          previousModel: model,
          reason: "provider_withdrawn",
        });
      }
      await hub.reconfigure(hosted, { providers, models });
      const rows = (await modelSelectionOf(hosted.session).list()).filter(({ ref }) => refs.includes(ref));
      return {
        models: rows.map(modelInfo),
        selectionIds: rows.map(({ ref }) => ref),
        ...(isWithdrawn && { modelDeselected: true }),
      };
    },
  ),
  "session.provider.getEndpoint": sessionMethod(
    () => ({ modelId: z.string().optional() }),
    async (_, { server, session, hosted }) => {
      if (server.options.environment.COPILOT_ALLOW_GET_PROVIDER_ENDPOINT !== "true") {
        throw new TroupeError("usage", "A session's provider and its key are not shown to clients.", {
          hint: "Start the server with COPILOT_ALLOW_GET_PROVIDER_ENDPOINT=true.",
        });
      }
      const { provider } = hosted.options;
      if (provider) {
        const { type = "openai", wireApi = "completions", transport, baseUrl, apiKey, headers = {} } = provider;
        const wire = type === "anthropic" ? {} : { wireApi, ...defined({ transport }) };
        return { type, ...wire, baseUrl, ...defined({ apiKey }), headers };
      }
      const endpoint = await session.workspace.services?.identity?.endpoint();
      if (!endpoint) throw new TroupeError("usage", "The session's provider comes from troupe's own settings.");
      const { baseUrl, token, headers } = endpoint;
      return {
        type: "openai",
        wireApi: "completions",
        baseUrl,
        apiKey: token,
        headers: { ...headers, Authorization: `Bearer ${token}`, "X-Interaction-Id": session.id },
      };
    },
  ),
};

function modelSelectionOf(session: Session): ModelSelection {
  const { selection } = session.mainAgent;
  if (!selection) throw new TroupeError("failed", "The model of this session cannot be changed.");
  return selection;
}

/** Context window of models that do not declare one; the same default as elsewhere. */
const ASSUMED_WINDOW = 128_000;

/** Returns a model in the form of the wire. */
export function modelInfo({ id, name, contextWindow, maxOutputTokens, vision, price }: ModelRow): object {
  return {
    id,
    name,
    // An extension of the protocol: US dollars per million tokens.
    ...(price && { price: { input: price.input, output: price.output } }),
    capabilities: {
      supports: { vision: vision ?? true, reasoningEffort: true },
      limits: {
        max_context_window_tokens: contextWindow ?? ASSUMED_WINDOW,
        ...defined({ max_output_tokens: maxOutputTokens }),
      },
    },
  };
}
