import type { Stamp } from "../../lib/stamp.ts";
import type { Emit } from "../../protocol/event.ts";
import type { Outcome } from "../turn/answer-runner.ts";

/** Pause of the queue after a rate limit without a retry time. */
const RATE_LIMIT_PAUSE_MS = 120_000;

/** Pauses the queue before its next message if the last one failed with a rate limit. Emits the reason. */
export async function pauseAfter(
  outcome: Outcome,
  queue: { waiting: number; emit: Emit; stamp: Stamp; signal: AbortSignal },
): Promise<void> {
  if (outcome.kind !== "error" || outcome.error.kind !== "rate_limit") return;
  const { waiting, emit, stamp, signal } = queue;
  const pause = outcome.error.retryAfterMs ?? RATE_LIMIT_PAUSE_MS;
  const message = `Rate limited: ${waiting} waiting, next try in ${Math.ceil(pause / 1000)} s.`;
  void emit("session.info", { infoType: "rate_limit_pause", message });
  await stamp.sleep(pause, signal).catch(() => undefined);
}
