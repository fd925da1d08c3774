import type { ProviderDefinition } from "./definition.ts";

const window = { contextWindow: 131_072, maxOutputTokens: 65_536 };

export const groq: ProviderDefinition = {
  id: "groq",
  name: "Groq",
  wire: "completions",
  baseUrl: "https://api.groq.com/openai/v1",
  keyVariables: ["GROQ_API_KEY"],
  auth: "bearer",
  listsModels: true,
  defaultModel: "openai/gpt-oss-120b",
  models: [
    { name: "openai/gpt-oss-120b", ...window, price: { input: 0.15, output: 0.6 } },
    { name: "openai/gpt-oss-20b", ...window, price: { input: 0.075, output: 0.3 } },
  ],
};
