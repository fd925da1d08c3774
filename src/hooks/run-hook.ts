/** Runs one hook of any type and classifies how it ended. `runHook` never throws: every failure is an outcome. */
import type { EffectGuard } from "../lib/effect-guard.ts";
import type { ResolveName } from "../lib/node/checked-dial.ts";
import type { PrepareProgram } from "../lib/node/program.ts";
import { quoted } from "../lib/quoting.ts";
import { checkAnswer, type HookAnswer, messageOf, readAnswer } from "./answer.ts";
import { type CommandEnd, runCommand } from "./command.ts";
import { asSent, type Payload } from "./dialect.ts";
import type { HookEnvironment } from "./expand.ts";
import type { FunctionRun, HookDefinition } from "./hooks.ts";
import { runHttp } from "./http.ts";
import type { HookProgress } from "./output-reader.ts";
import { type HookOutput, type HookPoint, isAuthorising } from "./points.ts";

export type HookOutcome<P extends HookPoint> =
  | { readonly kind: "answered"; readonly output: HookOutput<P> | undefined }
  /** The program refused by its exit code. */
  | { readonly kind: "refused"; readonly reason: string }
  /** A message to show. Has an effect only through `output`. */
  | { readonly kind: "warned"; readonly message: string; readonly output?: HookOutput<P> }
  | { readonly kind: "failed"; readonly message: string }
  /** Cancelled by the caller. */
  | { readonly kind: "aborted" };

export interface RunPorts extends HookEnvironment {
  readonly prepare: PrepareProgram;
  readonly resolveName?: ResolveName;
  readonly effectGuard?: EffectGuard;
  onProgress(progress: HookProgress): void;
  onWarning(message: string): void;
}

export interface HookRequest<P extends HookPoint> {
  readonly definition: HookDefinition & { readonly point: P };
  readonly payload: Payload;
  readonly signal: AbortSignal | undefined;
}

const MAX_PAYLOAD_BYTES = 10 * 1024 * 1024;

export async function runHook<P extends HookPoint>(request: HookRequest<P>, ports: RunPorts): Promise<HookOutcome<P>> {
  const { definition, signal: aborted } = request;
  if (aborted?.aborted) return { kind: "aborted" };
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), definition.timeoutMs);
  const signal = aborted === undefined ? deadline.signal : AbortSignal.any([aborted, deadline.signal]);
  try {
    const run = (until: AbortSignal) => dispatch({ ...request, signal: until }, ports);
    const name = `a hook of ${definition.point}`;
    const outcome = await (ports.effectGuard ? ports.effectGuard.run({ name }, signal, run) : run(signal));
    if (aborted?.aborted) return { kind: "aborted" };
    const late = `it did not answer within ${definition.timeoutMs / 1000} s`;
    return deadline.signal.aborted ? { kind: "failed", message: late } : outcome;
  } catch (error) {
    if (aborted?.aborted) return { kind: "aborted" };
    return { kind: "failed", message: `it broke: ${messageOf(error)}` };
  } finally {
    clearTimeout(timer);
  }
}

async function dispatch<P extends HookPoint>(
  { definition, payload, signal }: HookRequest<P> & { readonly signal: AbortSignal },
  ports: RunPorts,
): Promise<HookOutcome<P>> {
  const { run, point, dialect } = definition;
  if (run.type === "function") return fromAnswer(checkAnswer(point, await callFunction(run, payload, signal)));
  if (run.type === "prompt") return { kind: "answered", output: undefined };
  const text = JSON.stringify(dialect === "camel" ? asSent(payload) : payload);
  if (Buffer.byteLength(text) > MAX_PAYLOAD_BYTES)
    return { kind: "failed", message: `its input is longer than ${MAX_PAYLOAD_BYTES} bytes` };
  if (run.type === "command") {
    return asWords(judgeCommand(point, await runCommand({ ...definition, run }, text, { ...ports, signal })));
  }
  const end = await runHttp({ ...definition, run }, text, { ...ports, signal });
  if (end.kind === "answer") return asWords(fromAnswer(readAnswer(point, end.body)));
  return { kind: "failed", message: end.kind === "failed" ? end.message : "it was stopped" };
}

function callFunction(run: FunctionRun, payload: Payload, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    const done = Promise.resolve().then(() => run.run(structuredClone(payload), signal));
    done.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

function judgeCommand<P extends HookPoint>(point: P, end: CommandEnd): HookOutcome<P> {
  switch (end.kind) {
    case "exit":
      if (end.code === 0) return fromAnswer(readAnswer(point, end.stdout), end.stderr);
      return end.code === 2
        ? judgeRefusal(point, end)
        : { kind: "failed", message: withDetail(`it ended with exit code ${end.code}`, end.stderr) };
    case "killed":
      return { kind: "failed", message: withDetail(`it was ended by ${end.signal}`, end.stderr) };
    case "too-much":
      return { kind: "failed", message: "it printed more than 10 MiB" };
    case "not-started":
      return { kind: "failed", message: `it could not be started: ${end.message}` };
    case "stopped":
      return { kind: "failed", message: "it was stopped" };
  }
}

/** Exit code 2: a refusal at deciding points, a block at stops, guidance after a failed call, otherwise a warning. */
function judgeRefusal<P extends HookPoint>(point: P, end: { stdout: string; stderr: string }): HookOutcome<P> {
  if (isAuthorising(point)) return { kind: "refused", reason: end.stderr || reasonIn(end.stdout) };
  if (point === "agentStop" || point === "subagentStop")
    return { kind: "refused", reason: end.stderr || stopReasonIn(end.stdout) };
  const message = withDetail("it ended with exit code 2", end.stderr);
  if (point !== "postToolUseFailure") return { kind: "warned", message };
  const said = readAnswer(point, end.stdout);
  const spoken = said.ok ? said.output : ({ additionalContext: end.stdout.trim() } as HookOutput<P>);
  return { kind: "warned", message, ...(spoken && { output: spoken }) };
}

function reasonIn(stdout: string): string {
  const said = readAnswer("preToolUse", stdout);
  return (said.ok ? said.output?.permissionDecisionReason : undefined) ?? "";
}

function stopReasonIn(stdout: string): string {
  const said = readAnswer("agentStop", stdout);
  return (said.ok ? said.output?.reason : undefined) ?? "";
}

const SPOKEN = ["additionalContext", "permissionDecisionReason"];

/** Quotes text that a model will read: a program may repeat text of third parties, which must not pass for ours. */
function asWords<P extends HookPoint>(outcome: HookOutcome<P>): HookOutcome<P> {
  if (outcome.kind === "refused") return { ...outcome, reason: quoted(outcome.reason) };
  if (!("output" in outcome) || outcome.output === undefined) return outcome;
  const spoken = Object.entries(outcome.output).filter(([name]) => SPOKEN.includes(name));
  const words = spoken.map(([name, value]) => [name, typeof value === "string" ? quoted(value) : value]);
  return { ...outcome, output: { ...outcome.output, ...Object.fromEntries(words) } };
}

function fromAnswer<P extends HookPoint>(answer: HookAnswer<P>, stderr = ""): HookOutcome<P> {
  if (answer.ok) return { kind: "answered", output: answer.output };
  return { kind: "failed", message: withDetail(answer.error, stderr) };
}

const withDetail = (message: string, detail: string): string => (detail === "" ? message : `${message}: ${detail}`);
