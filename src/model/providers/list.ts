import { anthropic } from "./anthropic.ts";
import { azure } from "./azure.ts";
import { deepseek } from "./deepseek.ts";
import type { ProviderDefinition } from "./definition.ts";
import { gemini } from "./gemini.ts";
import { groq } from "./groq.ts";
import { llamacpp } from "./llamacpp.ts";
import { lmstudio } from "./lmstudio.ts";
import { mistral } from "./mistral.ts";
import { ollama } from "./ollama.ts";
import { openai } from "./openai.ts";
import { openrouter } from "./openrouter.ts";
import { vllm } from "./vllm.ts";

/** All built-in providers. Of several configured ones, the first in this list provides the default model. */
export const providerList: readonly ProviderDefinition[] = [
  anthropic,
  openai,
  azure,
  gemini,
  mistral,
  deepseek,
  groq,
  openrouter,
  ollama,
  lmstudio,
  llamacpp,
  vllm,
];
