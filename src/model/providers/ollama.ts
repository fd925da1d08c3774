import type { ProviderDefinition } from "./definition.ts";

export const ollama: ProviderDefinition = {
  id: "ollama",
  name: "Ollama",
  wire: "completions",
  baseUrl: "http://127.0.0.1:11434/v1",
  keyVariables: [],
  auth: "none",
  local: { port: 11434, discover: true, windowPath: "/api/ps" },
  listsModels: true,
  models: [],
};
