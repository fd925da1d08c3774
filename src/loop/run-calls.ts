import { TroupeError } from "../protocol/errors.ts";
import type { EventData } from "../protocol/event.ts";
import type { ToolCall } from "../protocol/message.ts";
import { type BoundCall, type Tool, type ToolContext, ToolError, type ToolResult } from "../tools/tool.ts";
import type { Reply } from "./ask-model.ts";
import type { Run } from "./run.ts";

/** What the model reads for a call that was cut off, now or in an earlier life of the session. */
export const INTERRUPTED = "The execution of this tool, or a previous tool was interrupted.";

/**
 * Runs the calls of one reply: side by side, unless one of them asks to be alone. All starts are said before the
 * first end, and are on disk before anything with effects runs.
 */
export async function runCalls(reply: Reply, run: Run): Promise<"ask again" | "stop"> {
  const { turnId } = reply;
  const jobs = reply.calls.map((call) => ({ call, bound: attempt(() => bind(call, reply, run)) }));
  const starts = jobs.map(({ call }) =>
    run.emit("tool.execution_start", {
      toolCallId: call.toolCallId,
      toolName: call.name,
      arguments: call.arguments,
      turnId,
    }),
  );
  const harmless = jobs.every(({ bound }) => !bound.ok || bound.value.tool.readOnly);
  if (!harmless) await Promise.all(starts);

  const settleOne = ({ call, bound }: (typeof jobs)[number]) => settle({ call, bound, turnId, run });
  const alone = jobs.some(({ bound }) => bound.ok && bound.value.tool.exclusive);
  const ends: boolean[] = [];
  if (alone) for (const job of jobs) ends.push(await settleOne(job));
  else ends.push(...(await allOf(jobs.map(settleOne))));

  return jobs.length === 0 || ends.some((ended) => ended) ? "stop" : "ask again";
}

interface Bound {
  readonly tool: Tool;
  readonly call: BoundCall;
}

function bind(call: ToolCall, reply: Reply, run: Run): Bound {
  if (reply.stop === "length") {
    throw new ToolError("Not run: the reply was cut off at its length limit, so the arguments may be incomplete.");
  }
  const tool = run.tools.find((candidate) => candidate.name === call.name);
  if (!tool) {
    const names = run.tools.map(({ name }) => name).join(", ");
    throw new ToolError(`Tool '${call.name}' does not exist. Available tools that can be called are ${names}.`);
  }
  if (call.argumentsError !== undefined) {
    throw new ToolError(`The arguments of ${call.name} are not valid JSON: ${call.argumentsError}. Nothing was run.`);
  }
  return { tool, call: tool.bind(call.arguments) };
}

/** As `Promise.all`, but a failure is told only when nothing runs any more. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(work);
  return settled.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

/** Every start gets its end: a provider rejects a history with an unanswered call. True when it ends the turn. */
async function settle(job: { call: ToolCall; bound: Attempt<Bound>; turnId: string; run: Run }): Promise<boolean> {
  const { call, bound, turnId, run } = job;
  const outcome = bound.ok ? await attemptAsync(() => executeAndKeep(call, bound.value, run)) : bound;
  const base = { toolCallId: call.toolCallId, turnId };
  if (!bound.ok || !outcome.ok) {
    const error = explain(outcome.ok ? undefined : outcome.error, call.name, run);
    await run.emit("tool.execution_complete", { ...base, success: false, error });
    return false;
  }
  const { result, taskComplete } = outcome.value;
  const { tool } = bound.value;
  const ended = run.emit("tool.execution_complete", { ...base, success: true, result });
  if (taskComplete) await run.emit("session.task_complete", { ...taskComplete, success: true });
  // The end of the turn is a barrier right behind this one; waiting there shares the sync.
  if (!tool.readOnly) await ended;
  return tool.terminal;
}

/** What cannot be kept (too large, no room) is a failure of the call, which the model hears of, not of the run. */
async function executeAndKeep(call: ToolCall, bound: Bound, run: Run) {
  const value = await execute(call, bound, run);
  return { result: await keep(value, call.name, run), taskComplete: value.taskComplete };
}

async function execute(call: ToolCall, { tool, call: bound }: Bound, run: Run): Promise<ToolResult> {
  run.signal.throwIfAborted();
  const stop = new AbortController();
  const stopWithRun = (): void => stop.abort(run.signal.reason);
  run.signal.addEventListener("abort", stopWithRun, { once: true });
  const { toolCallId } = call;
  const context: ToolContext = {
    ...run.ports,
    cwd: run.cwd,
    roots: run.roots,
    toolCallId,
    signal: stop.signal,
    partialResult: (partialOutput) => void run.emit("tool.execution_partial_result", { toolCallId, partialOutput }),
    progress: (progressMessage) => void run.emit("tool.execution_progress", { toolCallId, progressMessage }),
  };
  let timer: NodeJS.Timeout | undefined;
  try {
    for (const access of await bound.access(context)) {
      const permission = await run.permit(access, { toolName: tool.name, toolCallId });
      if (!permission.allowed) throw new ToolError(permission.message, { code: "denied" });
    }
    timer = setTimeout(() => stop.abort(timedOut(tool)), tool.timeoutMs + Math.min(tool.timeoutMs, GRACE_MS));
    const work = bound.run(context);
    work.catch(() => undefined); // it may end after we stopped listening
    return await Promise.race([work, whenAborted(stop.signal)]);
  } finally {
    clearTimeout(timer);
    run.signal.removeEventListener("abort", stopWithRun);
  }
}

const timedOut = (tool: Tool): ToolError =>
  new ToolError(`${tool.name} did not finish within ${tool.timeoutMs / 1000} s and was stopped.`, { code: "timeout" });

/** A tool that watches its own time-out gets this long to say what it had. */
const GRACE_MS = 2_000;

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

type CompleteData = EventData<"tool.execution_complete">;

async function keep(result: ToolResult, toolName: string, run: Run): Promise<NonNullable<CompleteData["result"]>> {
  const images = result.images?.length ? await run.keepImages(result.images) : undefined;
  return {
    content: await run.bound(result.content, toolName),
    ...(result.detailedContent !== undefined && { detailedContent: result.detailedContent }),
    ...(images && { binaryResultsForLlm: images }),
  };
}

/** The model reads expected failures as they are; a bug is reported to people and only named to the model. */
function explain(error: unknown, toolName: string, run: Run): NonNullable<CompleteData["error"]> {
  if (run.signal.aborted) return { message: INTERRUPTED, code: "interrupted" };
  if (error instanceof ToolError) return { message: error.message, code: error.code };
  if (error instanceof TroupeError) return { message: `${toolName}: ${error.message}`, code: "failure" };
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  void run.emit("session.warning", { warningType: "tool_defect", message: `${toolName}: ${detail}` });
  return { message: `${toolName} failed because of a defect in it, not because of your arguments.`, code: "failure" };
}

type Attempt<T> = { ok: true; value: T } | { ok: false; error: unknown };

function attempt<T>(work: () => T): Attempt<T> {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    return { ok: false, error };
  }
}

async function attemptAsync<T>(work: () => Promise<T>): Promise<Attempt<T>> {
  return work().then(
    (value) => ({ ok: true, value }) as const,
    (error: unknown) => ({ ok: false, error }) as const,
  );
}
