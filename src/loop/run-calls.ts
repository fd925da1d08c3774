import { defined } from "../lib/defined.ts";
import { rejectWhenAborted } from "../lib/until-aborted.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { EventData } from "../protocol/event.ts";
import type { ToolCall } from "../protocol/message.ts";
import type { Access } from "../protocol/permission.ts";
import type { BoundCall, Tool, ToolContext } from "../tools/tool.ts";
import { ToolError, type ToolErrorCode, type ToolResult } from "../tools/tool-error.ts";
import type { ModelReply } from "./ask-model.ts";
import type { BeforeCall, CallEnd, PendingTurn, Run } from "./run.ts";

/** The result that the model reads for a call that was interrupted, in this process or an earlier one. */
export const INTERRUPTED = "The execution of this tool, or a previous tool was interrupted.";

/**
 * Runs the calls of one reply, concurrently unless one of them is exclusive. All start events are emitted before the
 * first end event, and are on disk before a call with side effects runs.
 */
export async function runCalls(reply: ModelReply, run: Run): Promise<Next> {
  const { turnId } = reply;
  const jobs: readonly Job[] = reply.calls.map((call) => ({ call, bound: resultOf(() => bind(call, reply, run)) }));
  const starts = jobs.map(({ call }) =>
    run.emit("tool.execution_start", {
      toolCallId: call.toolCallId,
      toolName: call.name,
      arguments: call.arguments,
      turnId,
      ...mcpNames(call.name, run),
    }),
  );
  const allReadOnly = jobs.every(({ bound }) => !bound.ok || bound.value.tool.readOnly);
  if (!allReadOnly) await Promise.all(starts);

  return runJobs(jobs, turnId, run);
}

/** Resumes calls that an earlier process started. Their hooks have already run and do not run again. */
export function continueCalls({ turnId, calls }: PendingTurn, run: Run): Promise<Next> {
  const jobs = calls.map(({ call, tool: permitted, otherwise, ask }): Job => {
    const isBack = toolNamed(call.name, run)?.origin?.kind === "custom";
    const tool = permitted ?? (isBack ? undefined : otherwise);
    const bindAgain = (): Bound =>
      tool ? { tool, call: tool.bind(call.arguments) } : bind(call, { stop: "tools" }, run);
    return { call, bound: resultOf(bindAgain), before: { kind: "go", ...defined({ ask }) } };
  });
  return runJobs(jobs, turnId, run);
}

/**
 * Runs one call for a client, outside any turn. Permissions, hooks and output limits apply as for a model's call. The
 * log marks it as requested by a user, and no model reads its result.
 */
export async function runRequestedCall(call: ToolCall, run: Run): Promise<RequestedEnd> {
  const bound = resultOf(() => bind(call, { stop: "tools" }, run));
  const { toolCallId } = call;
  const about = { toolCallId, toolName: call.name, arguments: call.arguments };
  void run.emit("tool.user_requested", about);
  await run.emit("tool.execution_start", { ...about, ...mcpNames(call.name, run) });
  const outcome = await resultOfAsync(() => runWithHooks({ call, bound, run }));
  const data = { toolCallId, isUserRequested: true, ...endOf(outcome, call, run) };
  if (outcome.ok && outcome.value.value.toolReferences) run.showTools?.(outcome.value.value.toolReferences);
  await run.emit("tool.execution_complete", data);
  return { data, ...(outcome.ok && { value: outcome.value.value }) };
}

export interface RequestedEnd {
  readonly data: CompleteData;
  /** Absent when the call failed. */
  readonly value?: ToolResult;
}

/** "pending": some calls are waiting for a client and stay pending after this process ends. */
type Next = "ask again" | "stop" | "pending";

interface Job {
  readonly call: ToolCall;
  readonly bound: Result<Bound>;
  /** The result of the hooks before the call, if they have already run. */
  readonly before?: Before;
}

async function runJobs(jobs: readonly Job[], turnId: string, run: Run): Promise<Next> {
  const runOne = (job: Job) => runJob({ ...job, turnId, run });
  const alone = jobs.some(({ bound }) => bound.ok && bound.value.tool.exclusive);
  const ends: JobEnd[] = [];
  if (alone) for (const job of jobs) ends.push(await runOne(job));
  else ends.push(...(await allOf(jobs.map(runOne))));

  // Wires require all results of a reply before any other message.
  for (const { messages } of ends) for (const message of messages) await run.emit("user.message", { ...message });
  if (ends.some(({ staysPending }) => staysPending)) return "pending";
  return jobs.length === 0 || ends.some(({ endsRun }) => endsRun) ? "stop" : "ask again";
}

interface JobEnd {
  readonly endsRun: boolean;
  readonly staysPending?: boolean;
  readonly messages: NonNullable<ToolResult["messages"]>;
}

function toolNamed(name: string, run: Run): Tool | undefined {
  const find = (wanted: string): Tool | undefined => run.tools.find((tool) => tool.name === wanted);
  // Wires forbid dots in names, so a dot in a requested name stands for an underscore.
  return find(name) ?? run.findTool?.(name) ?? (name.includes(".") ? find(name.replaceAll(".", "_")) : undefined);
}

function mcpNames(toolName: string, run: Run): { mcpServerName?: string; mcpToolName?: string } {
  const origin = toolNamed(toolName, run)?.origin;
  return origin?.kind === "mcp" ? { mcpServerName: origin.serverName, mcpToolName: origin.toolName } : {};
}

interface Bound {
  readonly tool: Tool;
  readonly call: BoundCall;
}

function bind(call: ToolCall, reply: Pick<ModelReply, "stop">, run: Run): Bound {
  if (reply.stop === "length") {
    throw new ToolError("Not run: the reply was cut off at its length limit, so the arguments may be incomplete.");
  }
  const tool = toolNamed(call.name, run);
  if (!tool) {
    const names = run.tools.map(({ name }) => name).join(", ");
    throw new ToolError(`Tool '${call.name}' does not exist. Available tools that can be called are ${names}.`);
  }
  if (call.argumentsError !== undefined) {
    throw new ToolError(`The arguments of ${call.name} are not valid JSON: ${call.argumentsError}. Nothing was run.`);
  }
  return { tool, call: tool.bind(call.arguments) };
}

/** Like `Promise.all`, but rejects only after all work has settled. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(work);
  return settled.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

/**
 * Runs one call and emits its end. Every started call gets an end, now or when the session is resumed, because
 * providers reject an unanswered call.
 */
async function runJob(job: Job & { turnId: string; run: Run }): Promise<JobEnd> {
  const { call, turnId, run } = job;
  const outcome = await resultOfAsync(() => runWithHooks(job));
  if (!outcome.ok && run.clientCalls?.staysPending(call.toolCallId))
    return { endsRun: true, staysPending: true, messages: [] };
  run.clientCalls?.forget(call.toolCallId);
  const end = { toolCallId: call.toolCallId, turnId, ...endOf(outcome, call, run) };
  const ended = run.emit("tool.execution_complete", end);
  if (!outcome.ok) {
    await ended;
    return { endsRun: end.error?.code === "rejected", messages: [] };
  }
  run.failures.reset();
  const { value, tool } = outcome.value;
  const { taskComplete, skillInvoked, toolReferences, messages = [] } = value;
  if (toolReferences) run.showTools?.(toolReferences);
  if (skillInvoked) void run.emit("skill.invoked", skillInvoked);
  if (taskComplete) await run.emit("session.task_complete", { ...taskComplete, success: true });
  // The end of the turn is awaited right after this event; awaiting only that saves a sync to disk.
  if (!tool?.readOnly) await ended;
  return { endsRun: tool?.endsAnswer ?? false, messages };
}

/** Returns the event data that describe how a call ended. */
function endOf(outcome: Result<Ended>, call: ToolCall, run: Run): Omit<CompleteData, "toolCallId"> {
  if (outcome.ok) {
    const { result, value } = outcome.value;
    const { telemetry, exitCode } = value;
    return {
      success: true,
      result,
      ...defined({ toolTelemetry: telemetry }),
      ...(exitCode !== undefined && { shellExecution: { exitCode } }),
    };
  }
  const error = withWarning(explain(outcome.error, call.name, run), run.failures.failed(call));
  const telemetry = outcome.error instanceof ToolError ? outcome.error.telemetry : undefined;
  return { success: false, error, ...defined({ toolTelemetry: telemetry }) };
}

interface Ended {
  readonly value: ToolResult;
  readonly result: NonNullable<CompleteData["result"]>;
  /** Absent if a hook answered instead of the tool. */
  readonly tool?: Tool;
}

/** Runs the call with its hooks. Without hooks, runs only the call. */
async function runWithHooks(job: Job & { run: Run }): Promise<Ended> {
  const { run, bound } = job;
  const { hooks } = run;
  if (!hooks) return executeAndStore(job.call, valueOrThrow(bound), run, job.before);
  run.signal.throwIfAborted();
  // Refused by the limits of the message: no hook may answer it.
  if (!bound.ok && isRefusal(bound.error)) throw bound.error;
  const before = job.before ?? (await hooks.before(job.call, run.signal));
  run.signal.throwIfAborted();
  if (before.kind === "deny") throw new ToolError(before.message, { code: "denied" });
  if (before.kind === "answer") {
    const value = { content: before.content };
    return { value, result: await storeResult(value, job.call.name, run) };
  }
  const changed = before.arguments !== undefined;
  const call = changed ? { ...job.call, arguments: before.arguments } : job.call;
  if (changed) void run.emit("troupe.call_changed", { toolCallId: call.toolCallId, arguments: call.arguments });
  const outcome = await resultOfAsync(async () =>
    executeAndStore(call, changed ? rebind(call, run) : valueOrThrow(bound), run, before),
  );
  return applyHooksAfter({ call, outcome, before, hooks, run });
}

/** Applies the hooks that run after the call. */
async function applyHooksAfter(ended: {
  call: ToolCall;
  outcome: Result<Ended>;
  before: Before;
  hooks: NonNullable<Run["hooks"]>;
  run: Run;
}): Promise<Ended> {
  const { call, outcome, before, hooks, run } = ended;
  run.signal.throwIfAborted();
  const end: CallEnd = outcome.ok
    ? { ok: true, content: outcome.value.value.content }
    : { ok: false, ...explain(outcome.error, call.name, run) };
  const after = await hooks.after(call, end, run.signal);
  const added = [before.context, after.context].filter((text) => text !== undefined).join("\n\n");
  const withContext = (text: string): string => (added === "" ? text : `${text}\n\n${added}`);
  if (!end.ok) throw new ToolError(withContext(end.message), { code: end.code });
  if (!outcome.ok) throw outcome.error;
  if (after.failure !== undefined) throw new ToolError(withContext(after.failure));
  if (after.content === undefined && added === "") return outcome.value;
  const value = { ...outcome.value.value, content: withContext(after.content ?? outcome.value.value.content) };
  return { ...outcome.value, value, result: await storeResult(value, call.name, run) };
}

function valueOrThrow<T>(attempted: Result<T>): T {
  if (!attempted.ok) throw attempted.error;
  return attempted.value;
}

const isRefusal = (error: unknown): boolean => error instanceof ToolError && error.code === "denied";

/** Validates changed arguments like the model's own. */
function rebind(call: ToolCall, run: Run): Bound {
  const { argumentsError: _, ...changed } = call;
  return bind(changed, { stop: "tools" }, run);
}

/** Runs the call and stores its result. A result that cannot be stored fails the call, not the run. */
async function executeAndStore(call: ToolCall, bound: Bound, run: Run, before?: Before): Promise<Ended> {
  const value = await execute({ call, bound, run, ...defined({ before }) });
  return { value, result: await storeResult(value, call.name, run), tool: bound.tool };
}

type Before = Extract<BeforeCall, { kind: "go" }>;

async function execute(job: { call: ToolCall; bound: Bound; run: Run; before?: Before }): Promise<ToolResult> {
  const { call, run, before } = job;
  const { tool, call: bound } = job.bound;
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
    lockWait: (wait) => void run.emit("troupe.lock_wait", { toolCallId, ...wait }),
    progress: (progressMessage) => void run.emit("tool.execution_progress", { toolCallId, progressMessage }),
  };
  let timer: NodeJS.Timeout | undefined;
  try {
    const { ask: hookMessage, approvedBy } = before ?? {};
    const asked: Access[] =
      hookMessage === undefined ? [] : [{ kind: "hook", toolName: tool.name, toolArgs: call.arguments, hookMessage }];
    const reads: string[] = [];
    for (const access of [...asked, ...(await bound.access(context))]) {
      const judged = { toolName: tool.name, toolCallId, ...defined({ approvedBy }) };
      const permission = await run.permit(access, judged);
      if (!permission.allowed) {
        throw new ToolError(permission.message, { code: permission.rejected ? "rejected" : "denied" });
      }
      reads.push(...(permission.reads ?? []));
    }
    timer = setTimeout(() => stop.abort(timedOut(tool)), tool.timeoutMs + Math.min(tool.timeoutMs, GRACE_MS));
    const work = runUnderLease(job.bound, tool.readOnly ? withReads(context, reads) : context, run);
    work.catch(() => undefined); // it may settle after the race is over
    return await Promise.race([work, rejectWhenAborted(stop.signal)]);
  } finally {
    clearTimeout(timer);
    run.signal.removeEventListener("abort", stopWithRun);
  }
}

function runUnderLease({ tool, call }: Bound, context: ToolContext, { effectGuard }: Run): Promise<ToolResult> {
  if (!effectGuard) return call.run(context);
  // A client, a person or agents do the work. A client outlives this process, and agents have guards of their own.
  const waits = tool.origin?.kind === "custom" || tool.needs !== undefined || tool.managesAgents === true;
  return effectGuard.run({ name: tool.name, waits }, context.signal, (signal) => call.run({ ...context, signal }));
}

/** Returns the context of a call that may also read paths approved by a user. */
function withReads(context: ToolContext, reads: readonly string[]): ToolContext {
  return reads.length === 0 || context.roots.length === 0
    ? context
    : { ...context, roots: [...context.roots, ...reads] };
}

const timedOut = (tool: Tool): ToolError =>
  new ToolError(`${tool.name} did not finish within ${tool.timeoutMs / 1000} s and was stopped.`, { code: "timeout" });

/** Extra time for a tool that enforces its own timeout to return partial output. */
const GRACE_MS = 2_000;

type CompleteData = EventData<"tool.execution_complete">;

async function storeResult(
  result: ToolResult,
  toolName: string,
  run: Run,
): Promise<NonNullable<CompleteData["result"]>> {
  const { images = [], resources = [] } = result;
  const binaries = images.length + resources.length > 0 ? await run.storeBinaries({ images, resources }) : undefined;
  return {
    content: await run.limitOutput(result.content, toolName),
    ...defined({ detailedContent: result.detailedContent, binaryResultsForLlm: binaries }),
  };
}

/**
 * Returns the error that the model reads. Expected errors are passed on; a defect is reported as a warning and only
 * named to the model.
 */
function explain(error: unknown, toolName: string, run: Run): { message: string; code: ToolErrorCode } {
  if (run.signal.aborted) return { message: INTERRUPTED, code: "interrupted" };
  if (error instanceof ToolError) return { message: error.message, code: error.code };
  if (error instanceof TroupeError) return { message: `${toolName}: ${error.message}`, code: "failure" };
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  void run.emit("session.warning", { warningType: "tool_defect", message: `${toolName}: ${detail}` });
  return { message: `${toolName} failed because of a defect in it, not because of your arguments.`, code: "failure" };
}

const withWarning = <T extends { message: string }>(error: T, warning: string | undefined): T =>
  warning === undefined ? error : { ...error, message: `${error.message}\n\n${warning}` };

type Result<T> = { ok: true; value: T } | { ok: false; error: unknown };

function resultOf<T>(work: () => T): Result<T> {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    return { ok: false, error };
  }
}

async function resultOfAsync<T>(work: () => Promise<T>): Promise<Result<T>> {
  return work().then(
    (value) => ({ ok: true, value }) as const,
    (error: unknown) => ({ ok: false, error }) as const,
  );
}
