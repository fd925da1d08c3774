import type { ProviderDefinition } from "./definition.ts";

/** These names move to newer models over time, and so do their prices. */
export const mistral: ProviderDefinition = {
  id: "mistral",
  name: "Mistral",
  wire: "completions",
  baseUrl: "https://api.mistral.ai/v1",
  keyVariables: ["MISTRAL_API_KEY"],
  auth: "bearer",
  streamUsage: false,
  chatDialect: { hosts: ["mistral.ai"], callIds: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 } },
  listsModels: true,
  defaultModel: "mistral-medium-latest",
  models: [
    { name: "mistral-medium-latest", contextWindow: 131_072, price: null },
    { name: "codestral-latest", contextWindow: 256_000, price: null },
  ],
};
