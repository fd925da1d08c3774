import type { ProviderDefinition } from "./definition.ts";

const large = { contextWindow: 1_000_000, maxOutputTokens: 128_000 };

/** Dollars per thousand web searches. */
const search = { webSearch: 10 };

export const anthropic: ProviderDefinition = {
  id: "anthropic",
  name: "Anthropic",
  wire: "anthropic",
  baseUrl: "https://api.anthropic.com/v1",
  baseUrlVariable: "ANTHROPIC_BASE_URL",
  keyVariables: ["ANTHROPIC_API_KEY"],
  auth: "x-api-key",
  headers: { "anthropic-version": "2023-06-01" },
  listsModels: true,
  defaultModel: "claude-sonnet-5-5",
  models: [
    { name: "claude-opus-5-5", ...large, price: { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5, ...search } },
    {
      name: "claude-sonnet-5-5",
      ...large,
      price: { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5, ...search },
    },
    {
      name: "claude-haiku-5-5",
      ...large,
      price: {
        input: 0.1,
        output: 0.5,
        cacheRead: 0.01,
        cacheWrite: 0.125,
        ...search,
        upToInputTokens: 100_000,
        beyond: { input: 0.5, output: 2.5, cacheRead: 0.05, cacheWrite: 0.625, ...search },
      },
    },
    { name: "claude-opus-5", ...large, price: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25, ...search } },
    {
      name: "claude-haiku-4-5",
      contextWindow: 200_000,
      maxOutputTokens: 64_000,
      price: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25, ...search },
    },
  ],
};
