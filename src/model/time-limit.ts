import { ModelError } from "./model-error.ts";
import { defineProvider, type Provider } from "./provider.ts";

/** Returns the provider with a time limit for one call including all its retries. A timeout is not retried. */
export function withTimeLimit(provider: Provider, totalMs: number): Provider {
  return defineProvider({
    id: provider.id,
    async *stream(request, signal) {
      const clock = AbortSignal.timeout(totalMs);
      for await (const event of provider.stream(request, AbortSignal.any([signal, clock]))) {
        if (event.type === "end" && event.stop === "aborted" && !signal.aborted) {
          const message = `${provider.id}: no whole answer within ${totalMs / 1000} s`;
          throw new ModelError(message, { kind: "timeout", provider: provider.id, retryable: false });
        }
        yield event;
      }
    },
  });
}
