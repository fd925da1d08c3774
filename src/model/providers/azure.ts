import type { ProviderDefinition } from "./definition.ts";

/** Models are the names of the user's own deployments, so none can be known. */
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
