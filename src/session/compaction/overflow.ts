import type { ModelError } from "../../model/model-error.ts";
import { countSent, type ModelRequest, type Provider } from "../../model/provider.ts";
import type { Message } from "../../protocol/message.ts";

export interface ShrinkPorts {
  /** Makes the conversation, or the part of it that is sent, smaller. */
  shrink(signal: AbortSignal): Promise<void>;
  messages(): Promise<readonly Message[]>;
}

/**
 * Wraps a provider: if a request is too long, it is sent once more with a smaller context. Listeners see this as a
 * retry.
 */
export function afterOverflow(provider: Provider, shrinking: ShrinkPorts): Provider {
  return {
    id: provider.id,
    async *stream(request, signal) {
      let shown: ModelRequest = request;
      for (let attempt = 1; ; attempt++) {
        let tooLong: ModelError | undefined;
        for await (const event of provider.stream(shown, signal)) {
          if (event.type === "end" && attempt === 1 && isTooLong(event.error)) tooLong = event.error;
          else yield event;
        }
        if (!tooLong) return;
        await shrinking.shrink(signal);
        if (signal.aborted) {
          yield { type: "end", stop: "aborted" };
          return;
        }
        yield { type: "retry", attempt, delayMs: 0, error: tooLong };
        countSent(request, 1);
        shown = { ...request, messages: await shrinking.messages() };
      }
    },
  };
}

const TOO_LARGE = 413;

function isTooLong(error: ModelError | undefined): error is ModelError {
  return error?.kind === "context_length" || error?.statusCode === TOO_LARGE;
}
