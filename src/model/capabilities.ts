import { defined } from "../lib/defined.ts";
import type { ModelCapabilities } from "./given-providers.ts";
import type { KnownModel } from "./providers/definition.ts";

interface Limits {
  readonly maxPromptTokens?: number | undefined;
  readonly maxContextWindowTokens?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
}

/** Returns the model's limits. A context window holds the prompt and the reply. */
export function limitsOf(limits: Limits): Pick<KnownModel, "contextWindow" | "maxOutputTokens"> {
  const { maxPromptTokens, maxContextWindowTokens, maxOutputTokens } = limits;
  const window = maxContextWindowTokens ?? (maxPromptTokens && maxPromptTokens + (maxOutputTokens ?? 0));
  return defined({ contextWindow: window, maxOutputTokens });
}

/** Returns the fields of a model that are overridden. */
export function overridesOf(
  given: ModelCapabilities | undefined,
): Pick<KnownModel, "contextWindow" | "maxOutputTokens" | "vision"> {
  const { supports, limits = {} } = given ?? {};
  return {
    ...limitsOf({
      maxPromptTokens: limits.max_prompt_tokens,
      maxContextWindowTokens: limits.max_context_window_tokens,
      maxOutputTokens: limits.max_output_tokens,
    }),
    ...defined({ vision: supports?.vision }),
  };
}
