/** `troupe submit`: hands a prompt to the workers of a database. */

import { defined } from "../../lib/defined.ts";
import { sanitise } from "../../lib/text.ts";
import { readTraceContext, type TraceContext, writeTraceContext } from "../../lib/trace-context.ts";
import { type Cluster, submitWork } from "../../runtime/cluster/cluster.ts";
import { type WorkOutcome, type WorkRow, waitForWork } from "../../runtime/cluster/work.ts";
import { type Arguments, parse, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { options } from "../options.ts";
import { jsonLine, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { useCluster } from "./use-cluster.ts";

const GUARDED: readonly string[] = ["Permissions", "Extensions", "MCP", "Memory"];

export function submitCommand(given: Arguments): Promise<ExitCode> {
  return submitPrompt(given, { sessionId: given.text("session-id") ?? crypto.randomUUID() });
}

/** Hands the prompt in. With `ended`, which is called when the work has ended, or `--wait` it prints the answer. */
export async function submitPrompt(
  given: Arguments,
  { sessionId, ended }: { readonly sessionId: string; readonly ended?: () => Promise<void> },
): Promise<ExitCode> {
  const prompt = given.text("prompt");
  if (prompt === undefined || prompt.trim() === "") throw usage('Give a prompt: -p "<prompt>"');
  const [repository, ref] = [given.text("repo"), given.text("ref")];
  const onLoss = given.choice("on-loss", ["continue", "stop"]) ?? "continue";
  const id = crypto.randomUUID();
  const [tenant, pool] = [given.text("tenant"), given.text("pool")];
  const refused = given.flags.find((name) => REFUSED.includes(name));
  if (refused !== undefined) {
    throw usage(`--${refused} is decided by the workers.`, `Start them with it: troupe worker --${refused} …`);
  }
  const flags = given.without(OWN);
  sessionRequest(parse(flags), "json");
  const asks = given.has("ask") ? ASKED : undefined;
  const trace = traceOfCaller(process.env);
  const request = { prompt, flags, ...defined({ asks, repository, ref, trace }) };
  const submitAndWait = async (cluster: Cluster): Promise<ExitCode> => {
    await submitWork(cluster, { ...{ id, sessionId, onLoss, request }, ...defined({ tenant, pool }) });
    if (!given.has("wait") && !ended) {
      await write(given.has("json") ? `${jsonLine({ workId: id, sessionId }, process.stdout)}\n` : `${sessionId}\n`);
      return exitCodes.done;
    }
    const timeoutMs = given.amount("timeout", "whole") ?? MAX_WAIT_MS;
    const work = await waitForWork(cluster.database, id, timeoutMs);
    await ended?.();
    return report(given, work, { id, sessionId });
  };
  return useCluster(given, submitAndWait, { creates: true });
}

/** The trace context in the environment, as programs pass it to their children. An invalid one counts as absent. */
function traceOfCaller({ TRACEPARENT, TRACESTATE }: NodeJS.ProcessEnv): TraceContext | undefined {
  const context = readTraceContext(defined({ traceparent: TRACEPARENT, tracestate: TRACESTATE }));
  return context && writeTraceContext(context);
}

/** The work goes on without the command. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

/** Kinds of requests that wait for a response with `--ask`. */
const ASKED = ["permission", "user_input", "exit_plan_mode"] as const;

/** Flags of `submit` itself, which are not flags of the session. */
const OWN: readonly string[] = [
  ...options.filter(({ group }) => group === "Commands").map(({ name }) => name),
  ...["prompt", "session-id", "json", "resume", "continue", "output-format", "silent", "log-level"],
];

/** Flags that would allow something on the workers' machines. */
const REFUSED: readonly string[] = options
  .filter(({ name, group }) => GUARDED.includes(group) && !/^(?:deny|excluded|available|no|disable)-/.test(name))
  .map(({ name }) => name);

async function report(
  given: Arguments,
  work: WorkRow | undefined,
  ids: { readonly id: string; readonly sessionId: string },
): Promise<ExitCode> {
  const outcome = work?.outcome ?? null;
  if (given.has("json"))
    await write(`${jsonLine({ workId: ids.id, sessionId: ids.sessionId, outcome }, process.stdout)}\n`);
  else if (outcome?.kind === "done")
    await write(`${process.stdout.isTTY ? sanitise(outcome.answer) : outcome.answer}\n`);
  if (outcome?.kind === "done") return exitCodes.done;
  printMessage(`session ${ids.sessionId}: ${describe(outcome)}`);
  return exitCodes.failed;
}

function describe(outcome: WorkOutcome | null): string {
  if (outcome === null) return "not done yet; it continues without this command";
  if (outcome.kind === "done") return "done";
  if (outcome.kind === "lost") return "the worker was lost, and the job was not continued (--on-loss stop)";
  return `${outcome.kind}: ${outcome.message}`;
}
