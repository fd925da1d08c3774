/**
 * The loop: one model call is one turn; its tools run, their results go back, until the model has nothing left to
 * ask for. The main agent and every subagent run this same function. Later features attach at three places only –
 * `run.beforeModelCall`, the provider stream itself, and `run.beforeStopping` – so it does not grow with them.
 */
import type { ModelError } from "../model/model-error.ts";
import { askModel } from "./ask-model.ts";
import type { LimitReached, PendingTurn, Run } from "./run.ts";
import { continueCalls, runCalls } from "./run-calls.ts";

export type Outcome =
  | { readonly kind: "done"; readonly answer: string }
  /** `left`: calls of it wait on, and can be gone on with when the session is taken up again. */
  | { readonly kind: "aborted"; readonly left?: true }
  | { readonly kind: "error"; readonly error: ModelError }
  | { readonly kind: "limit"; readonly reached: LimitReached };

/** Ask the model, run the tools it asked for, repeat until it stops. */
export async function runLoop(run: Run): Promise<Outcome> {
  let lastEnd: Promise<void> | undefined;
  for (;;) {
    await run.inbox.deliver(run.emit);

    const reached = await run.beforeModelCall();
    if (run.signal.aborted) return { kind: "aborted" };
    if (reached) return { kind: "limit", reached };

    const turnId = run.nextTurnId();
    const reply = await askModel(run, turnId);
    const next = await runCalls(reply, run);
    if (next === "left") return { kind: "aborted", left: true };
    await lastEnd; // a turn reaches the disk while the model thinks about the next, but never falls further behind
    lastEnd = run.emit("assistant.turn_end", { turnId, model: run.model });
    if (next === "ask again" && !run.signal.aborted) continue;

    await lastEnd;
    if (run.signal.aborted || reply.stop === "aborted") return { kind: "aborted" };
    if (reply.error) return { kind: "error", error: reply.error };
    if ((await run.beforeStopping()) === "stop") return { kind: "done", answer: reply.content };
  }
}

/** As `runLoop`, from the calls on that an earlier life of the session was left with. */
export async function continueLoop(turn: PendingTurn, run: Run): Promise<Outcome> {
  const next = await continueCalls(turn, run);
  if (next === "left") return { kind: "aborted", left: true };
  await run.emit("assistant.turn_end", { turnId: turn.turnId, model: run.model });
  if (run.signal.aborted) return { kind: "aborted" };
  if (next === "ask again" || (await run.beforeStopping()) === "continue") return runLoop(run);
  return { kind: "done", answer: turn.content };
}
