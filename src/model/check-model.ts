import type { Provider } from "./provider.ts";

const TIMEOUT_MS = 20_000;
const MAX_OUTPUT_TOKENS = 64;

/** Sends one short request, without retries. Rejects with the reason if the model does not answer. */
export async function checkModel(
  { provider, model }: { readonly provider: Provider; readonly model: string },
  signal?: AbortSignal,
): Promise<void> {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const request = {
    model,
    system: "",
    tools: [],
    stream: true,
    maxOutputTokens: MAX_OUTPUT_TOKENS,
    messages: [{ role: "user" as const, content: "Answer with the word ready." }],
  };
  for await (const event of provider.stream(request, signal ? AbortSignal.any([signal, limit]) : limit)) {
    if (event.type === "retry") throw event.error;
    if (event.type !== "end") continue;
    if (event.error) throw event.error;
    if (event.stop !== "aborted") continue;
    signal?.throwIfAborted();
    throw new Error(`no answer within ${TIMEOUT_MS / 1000} s`);
  }
}
