import type { ProviderDefinition } from "./definition.ts";

export const vllm: ProviderDefinition = {
  id: "vllm",
  name: "vLLM",
  wire: "completions",
  baseUrl: "http://127.0.0.1:8000/v1",
  keyVariables: [],
  auth: "none",
  local: { port: 8000, discover: false },
  listsModels: true,
  models: [],
};
