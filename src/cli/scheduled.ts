import { plural } from "../lib/text.ts";
import type { Session } from "../session/session.ts";
import type { AnswerOutput } from "./answers.ts";
import { printMessage } from "./output/print-message.ts";

/**
 * Waits until scheduled prompts are done or the command is interrupted. In prompt mode no later input could run them.
 */
export async function whileScheduled(
  session: Session,
  how: { answers: AnswerOutput; format: "text" | "json"; silent: boolean },
): Promise<void> {
  const waiting = (): number => session.workspace.services?.schedules?.()?.list().length ?? 0;
  if (waiting() === 0) return;
  if (!how.silent)
    printMessage(`${plural(waiting(), "prompt")} scheduled; troupe stays until they are done (Ctrl-C ends it)`);
  let answer = "";
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stop();
      resolve();
    };
    const stop = session.subscribe((event) => {
      if (event.type === "assistant.message" && event.agentId === undefined) answer = event.data.content;
      if (event.type !== "session.idle") return;
      if (how.format === "text" && answer !== "") how.answers.answer(answer);
      answer = "";
      if (waiting() === 0) done();
    });
    session.queue.closed.addEventListener("abort", done, { once: true });
    if (session.queue.closed.aborted) done();
  });
}
