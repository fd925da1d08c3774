import type { AgentSources } from "./agents.ts";
import type { FetchRemote } from "./agents-remote.ts";

/** A server that failed is asked again after this time. */
const RETRY_AFTER_MS = 60_000;

/**
 * Asks the server once, however often the agents of a session are read: at its start, by the watch, and after a change.
 * A failure is remembered for `RETRY_AFTER_MS`.
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
