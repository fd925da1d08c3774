import { defined } from "../lib/defined.ts";
import { nearest } from "../lib/text.ts";
import { ModelError } from "./model-error.ts";
import type { Provider } from "./provider.ts";

/** Adds a suggestion to the error when a provider does not know the requested model. */
export function withNearestName(provider: Provider, names: () => Promise<readonly string[]>): Provider {
  return {
    id: provider.id,
    async *stream(request, signal) {
      for await (const event of provider.stream(request, signal)) {
        if (event.type !== "end" || event.error?.statusCode !== 404) yield event;
        else yield { ...event, error: withSuggestion(event.error, request.model, await names()) };
      }
    },
  };
}

function withSuggestion(error: ModelError, wanted: string, names: readonly string[]): ModelError {
  const close = names.includes(wanted) ? undefined : nearest(wanted, names);
  if (close === undefined) return error;
  const { kind, provider, statusCode, code } = error;
  return new ModelError(error.message, {
    kind,
    provider,
    hint: `Did you mean ${provider}/${close}?`,
    cause: error,
    ...defined({ statusCode, code }),
  });
}
