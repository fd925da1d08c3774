import type { ProviderDefinition } from "./definition.ts";

/** Dollars per thousand web searches. */
const search = { webSearch: 14 };

/** Uses Gemini's endpoint for the chat wire. */
export const gemini: ProviderDefinition = {
  id: "gemini",
  name: "Google Gemini",
  wire: "completions",
  baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
  keyVariables: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
  auth: "bearer",
  // Gemini 3 and later.
  chatDialect: { hosts: ["googleapis.com"], signedModels: /gemini-(?:[3-9]|\d\d)/ },
  listsModels: true,
  defaultModel: "gemini-3.8-flash",
  models: [
    {
      name: "gemini-3.8-flash",
      contextWindow: 1_000_000,
      maxOutputTokens: 65_536,
      price: { input: 0.75, output: 3.75, ...search },
    },
    {
      name: "gemini-3.5-flash",
      contextWindow: 1_000_000,
      maxOutputTokens: 64_000,
      price: { input: 1.5, output: 9, cacheRead: 0.15, ...search },
    },
  ],
};
