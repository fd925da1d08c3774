import type { ProviderDefinition } from "./definition.ts";

export const llamacpp: ProviderDefinition = {
  id: "llamacpp",
  name: "llama.cpp",
  wire: "completions",
  baseUrl: "http://127.0.0.1:8080/v1",
  keyVariables: [],
  auth: "none",
  local: { port: 8080, discover: true },
  listsModels: true,
  models: [],
};
