import type { ProviderDefinition } from "./definition.ts";

/** Lists no models: their names are the user's own deployments. */
export const azure: ProviderDefinition = {
  id: "azure",
  name: "Azure OpenAI",
  wire: "completions",
  baseUrl: "",
  baseUrlVariable: "AZURE_OPENAI_ENDPOINT",
  keyVariables: ["AZURE_OPENAI_API_KEY"],
  auth: "api-key",
  azure: { versionVariables: ["AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"] },
  listsModels: false,
  models: [],
};
