import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Session } from "../../session/session.ts";
import { usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { output } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { progressOf, watch } from "../output/watching.ts";
import { HAND_OVER_WAIT_MS, sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";
import { oneTask, type TasksCall } from "./tasks.ts";

const DEFAULT_MESSAGE = "Go on where you were interrupted.";
/** Timeout for one agent. It can be resumed again. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

/** Resumes one agent. The main agent stays idle, and receives the result with its next message. */
export async function resumeTask(call: TasksCall): Promise<ExitCode> {
  const { given, words, runtime, sessionId } = call;
  const [word, message = DEFAULT_MESSAGE, ...more] = words;
  if (more.length > 0) throw usage("Put the whole message to the agent in quotes.");
  const id = await oneTask({ words: word === undefined ? [] : [word], runtime, sessionId, verb: "resume" });
  const bar = progressOf(given, { waitMs: 0 });
  const request = sessionRequest(given, "text");
  const session = await runtime.resumeSession(sessionId, {
    ...request,
    agents: { ...request.agents, wakes: false },
    resume: { patienceMs: HAND_OVER_WAIT_MS },
  });
  const out = output(process.stdout, () => void session.close());
  let isInterrupted = false;
  const removeInterrupt = onInterrupt(() => {
    isInterrupted = true;
    void session.close();
  });
  try {
    const failures = failuresOf(id);
    watch(session, bar, failures.onEvent);
    const { answer, ...end } = await answerOf(session, id, message);
    bar.stop();
    if (answer !== "") out.answer(answer);
    await out.flushed();
    await session.close();
    const code = out.failure || isInterrupted ? exitCodes.interrupted : exitCode(end.reason, failures.any());
    if (code !== exitCodes.done) printMessage(problemOf(id, { ...end, sessionId }));
    return code;
  } finally {
    removeInterrupt();
    bar.stop();
    await session.close();
  }
}

interface End {
  readonly answer: string;
  readonly reason: string;
  readonly error?: string;
}

async function answerOf(session: Session, id: string, message: string): Promise<End> {
  const { tasks } = session.agents;
  const before = tasks?.view(id)?.turns ?? 0;
  const receipt = await tasks?.send(id, message);
  if (!tasks || receipt?.outcome === "refused") {
    throw new TroupeError("failed", receipt?.error ?? "This session cannot start agents: it was opened without them.", {
      hint: `What it answered: troupe tasks show ${id} --session ${session.id}`,
    });
  }
  const end = await tasks.wait(id, { timeoutMs: MAX_WAIT_MS, sinceAnswer: before });
  const report = await tasks.report(id, { sinceAnswer: before });
  return {
    answer: report.answers.map(({ response }) => response).join("\n\n"),
    reason: end === "timeout" ? "interrupted" : (report.task.reason ?? "finished"),
    ...defined({ error: report.error }),
  };
}

/** Records whether the provider caused the agent's failure. */
function failuresOf(id: string) {
  let failed = false;
  return {
    onEvent(event: SessionEvent): void {
      if (event.agentId !== id) return;
      if (event.type === "model.call_failure") failed = true;
      if (event.type === "assistant.message") failed = false;
    },
    any: () => failed,
  };
}

function exitCode(reason: string, providerFailed: boolean): ExitCode {
  if (reason === "finished") return exitCodes.done;
  if (reason === "limit") return exitCodes.limit;
  if (reason === "stopped" || reason === "interrupted") return exitCodes.interrupted;
  return providerFailed ? exitCodes.provider : exitCodes.failed;
}

function problemOf(id: string, { reason, error, sessionId }: Omit<End, "answer"> & { sessionId: string }): string {
  const what = `agent ${id} did not finish (${reason.replace("_", " ")})${error === undefined ? "" : `: ${error}`}`;
  return `${what.replace(/[.\s]+$/, "")}. To resume: troupe tasks resume ${id} --session ${sessionId}`;
}
