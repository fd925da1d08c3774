import type { ProviderDefinition } from "./definition.ts";

/** Hundreds of models named `vendor/name`. The server lists them with their context windows. */
export const openrouter: ProviderDefinition = {
  id: "openrouter",
  name: "OpenRouter",
  wire: "completions",
  baseUrl: "https://openrouter.ai/api/v1",
  keyVariables: ["OPENROUTER_API_KEY"],
  auth: "bearer",
  headers: { "x-title": "troupe" },
  listsModels: true,
  defaultModel: "openrouter/auto",
  models: [{ name: "openrouter/auto", price: null }],
};
