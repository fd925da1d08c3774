import type { AgentSources } from "./agents.ts";
import type { FetchRemote } from "./agents-remote.ts";

/** Time after which a failed request is repeated. */
const RETRY_AFTER_MS = 60_000;

/**
 * Requests the agents from the server once, however often they are read: at the start, by the watch, and after a
 * change. A failure is cached for `RETRY_AFTER_MS`.
 */
export function rememberRemote(
  fetch: FetchRemote,
  now: () => number = () => performance.now(),
): Required<Pick<AgentSources, "remote" | "forgetRemote">> {
  let answer: Promise<unknown> | undefined;
  let failedAt: number | undefined;
  const forgetRemote = (): void => {
    answer = undefined;
    failedAt = undefined;
  };
  return {
    forgetRemote,
    remote(signal) {
      if (failedAt !== undefined && now() - failedAt >= RETRY_AFTER_MS) forgetRemote();
      if (answer !== undefined) return answer;
      const asked = fetch(signal);
      answer = asked;
      asked.catch(() => {
        if (answer === asked) failedAt = now();
      });
      return asked;
    },
  };
}
