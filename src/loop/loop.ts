/**
 * The agent loop. One model call is one turn: its tool calls run and their results are sent back, until the model makes
 * no more calls. The main agent and every subagent run this same function.
 * Features attach through the ports of `Run`; the loop does not grow with them:
 * - before each model call: `pendingMessages`, `beforeModelCall`, `history`, `usageInfo`
 * - the model call: `provider`, `whileModelWorks`, `spent`
 * - around tool calls: `findTool`, `showTools`, `hooks`, `permit`, `effects`, `ports`, `clientCalls`, `failures`,
 *   `limitOutput`, `storeBinaries`
 * - before it stops: `beforeStopping`
 *
 * This folder holds the loop, the model call, the tool calls and `Run`.
 */
import type { ModelError } from "../model/model-error.ts";
import { askModel } from "./ask-model.ts";
import type { LimitReached, PendingTurn, Run } from "./run.ts";
import { continueCalls, runCalls } from "./run-calls.ts";

export type LoopOutcome =
  | { readonly kind: "done"; readonly answer: string }
  /** `isPending`: some calls are still pending and can be resumed with the session. */
  | { readonly kind: "aborted"; readonly isPending?: true }
  | { readonly kind: "error"; readonly error: ModelError }
  | { readonly kind: "limit"; readonly reached: LimitReached };

/** Asks the model and runs its tool calls until it stops. */
export async function runLoop(run: Run): Promise<LoopOutcome> {
  let lastEnd: Promise<void> | undefined;
  for (;;) {
    await run.pendingMessages.deliver(run.emit);

    const reached = await run.beforeModelCall();
    if (run.signal.aborted) return { kind: "aborted" };
    if (reached) return { kind: "limit", reached };

    const turnId = run.nextTurnId();
    const reply = await askModel(run, turnId);
    const next = await runCalls(reply, run);
    if (next === "pending") return { kind: "aborted", isPending: true };
    await lastEnd; // a turn is written while the model works on the next one, and at most one turn is pending
    lastEnd = run.emit("assistant.turn_end", { turnId, model: run.model });
    if (next === "ask again" && !run.signal.aborted) continue;

    await lastEnd;
    if (run.signal.aborted || reply.stop === "aborted") return { kind: "aborted" };
    if (reply.error) return { kind: "error", error: reply.error };
    if ((await run.beforeStopping()) === "stop") return { kind: "done", answer: reply.content };
  }
}

/** Resumes the pending calls of an earlier process, then continues as `runLoop`. */
export async function continueLoop(turn: PendingTurn, run: Run): Promise<LoopOutcome> {
  const next = await continueCalls(turn, run);
  if (next === "pending") return { kind: "aborted", isPending: true };
  await run.emit("assistant.turn_end", { turnId: turn.turnId, model: run.model });
  if (run.signal.aborted) return { kind: "aborted" };
  if (next === "ask again" || (await run.beforeStopping()) === "continue") return runLoop(run);
  return { kind: "done", answer: turn.content };
}
