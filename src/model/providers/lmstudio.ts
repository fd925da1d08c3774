import type { ProviderDefinition } from "./definition.ts";

export const lmstudio: ProviderDefinition = {
  id: "lmstudio",
  name: "LM Studio",
  wire: "completions",
  baseUrl: "http://127.0.0.1:1234/v1",
  keyVariables: [],
  auth: "none",
  local: { port: 1234, discover: true },
  listsModels: true,
  models: [],
};
