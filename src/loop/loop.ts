/**
 * The loop: one model call is one turn; its tools run, their results go back, until the model has nothing left to
 * ask for. The main agent and every subagent run this same function. Later features attach at three places only –
 * `run.beforeModelCall`, the provider stream itself, and `run.beforeStopping` – so it does not grow with them.
 */
import type { ModelError } from "../model/model-error.ts";
import { askModel } from "./ask-model.ts";
import type { LimitReached, Run } from "./run.ts";
import { runCalls } from "./run-calls.ts";

export type Outcome =
  | { readonly kind: "done"; readonly answer: string }
  | { readonly kind: "aborted" }
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
    await lastEnd; // a turn reaches the disk while the model thinks about the next, but never falls further behind
    lastEnd = run.emit("assistant.turn_end", { turnId, model: run.model });
    if (next === "ask again" && !run.signal.aborted) continue;

    await lastEnd;
    if (run.signal.aborted || reply.stop === "aborted") return { kind: "aborted" };
    if (reply.error) return { kind: "error", error: reply.error };
    if ((await run.beforeStopping()) === "stop") return { kind: "done", answer: reply.content };
  }
}
