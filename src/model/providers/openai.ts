import type { ProviderDefinition } from "./definition.ts";

/** Dollars per thousand web searches. */
const search = { webSearch: 10 };

export const openai: ProviderDefinition = {
  id: "openai",
  name: "OpenAI",
  wire: "responses",
  baseUrl: "https://api.openai.com/v1",
  baseUrlVariable: "OPENAI_BASE_URL",
  keyVariables: ["OPENAI_API_KEY"],
  auth: "bearer",
  chatDialect: {
    hosts: ["openai.com", "azure.com"],
    maxTokensField: "max_completion_tokens",
    takesCacheKey: true,
    callIds: { pattern: /^.{1,40}$/s, length: 40 },
  },
  listsModels: true,
  defaultModel: "gpt-6-sol",
  models: [
    {
      name: "gpt-6-sol",
      contextWindow: 872_000,
      maxOutputTokens: 128_000,
      // Longer prompts have other prices.
      price: { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5, upToInputTokens: 272_000, ...search },
    },
    {
      name: "gpt-6-luna",
      contextWindow: 1_000_000,
      maxOutputTokens: 128_000,
      price: { input: 0.1, output: 0.5, cacheRead: 0.01, cacheWrite: 0.125, upToInputTokens: 272_000, ...search },
    },
    {
      name: "gpt-5.2",
      contextWindow: 400_000,
      maxOutputTokens: 128_000,
      price: { input: 1.75, output: 14, cacheRead: 0.175, ...search },
    },
    {
      name: "gpt-5-mini",
      contextWindow: 400_000,
      maxOutputTokens: 128_000,
      price: { input: 0.25, output: 2, cacheRead: 0.025, ...search },
    },
    {
      name: "gpt-4.1",
      contextWindow: 1_047_576,
      maxOutputTokens: 32_768,
      price: { input: 2, output: 8, cacheRead: 0.5, ...search },
    },
  ],
};
