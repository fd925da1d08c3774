import { TroupeError } from "../../protocol/errors.ts";
import type { TaskRequest, Tasks } from "../../tools/agents/task-port.ts";
import { ToolError } from "../../tools/tool-error.ts";

/** Starts a background agent on behalf of a client and returns its id. Throws a `TroupeError` worded for the user. */
export async function startAgent(
  tasks: Tasks | undefined,
  request: Omit<TaskRequest, "mode">,
  signal: AbortSignal,
): Promise<string> {
  if (!tasks) throw new TroupeError("usage", "This session cannot start agents: it was opened without them.");
  const started = await tasks.start({ ...request, mode: "background" }, signal).catch((error: unknown) => {
    if (!(error instanceof ToolError)) throw error;
    throw new TroupeError("usage", error.message, { cause: error });
  });
  return started.kind === "background" ? started.id : started.report.task.id;
}
