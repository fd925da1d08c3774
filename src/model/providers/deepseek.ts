import type { ProviderDefinition } from "./definition.ts";

const window = { contextWindow: 1_000_000, maxOutputTokens: 384_000 };

/** Prices depend on the time of day, so they are unknown here. */
export const deepseek: ProviderDefinition = {
  id: "deepseek",
  name: "DeepSeek",
  wire: "completions",
  baseUrl: "https://api.deepseek.com",
  keyVariables: ["DEEPSEEK_API_KEY"],
  auth: "bearer",
  listsModels: true,
  defaultModel: "deepseek-flash",
  models: [
    { name: "deepseek-flash", ...window, price: null },
    { name: "deepseek-v4-pro", ...window, price: null },
  ],
};
