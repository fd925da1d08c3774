import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import { createRuntime, type Runtime } from "../runtime/runtime.ts";
import type { SessionRequest } from "../runtime/session-request.ts";
import { findSession, isInDirectory, lastSession } from "../runtime/sessions/select-session.ts";
import { type PromptSubmitOptions, type SubmitResult, submit } from "../runtime/submit.ts";
import type { AutopilotOptions, AutopilotVerdict } from "../session/modes/autopilot.ts";
import { initialMode } from "../session/modes/modes.ts";
import type { Outcome, Session } from "../session/session.ts";
import { type AnswerOutput, liveAnswers, wholeAnswers } from "./answers.ts";
import { type Arguments, usage, wantsJson } from "./args.ts";
import { withOwnDefaults } from "./config/own-defaults.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit-codes.ts";
import type { Launcher } from "./launcher.ts";
import { finalLines, resultLine } from "./output/outcome-text.ts";
import { type Output, output } from "./output/output.ts";
import { printMessage, sayLines } from "./output/print-message.ts";
import type { ProgressOutput } from "./output/progress.ts";
import { agentWaitMs, busyAgents, leftLines, progressOf, watch, whyLeft } from "./output/watching.ts";
import { pluginFolders } from "./plugin-folders.ts";
import { whileScheduled } from "./scheduled.ts";
import { onInterrupt } from "./signals.ts";
import { fitsPrompt, readPiped, spillPiped, withPiped } from "./stdin.ts";
import { unmergedTasks, worktreesFolder } from "./unmerged.ts";

/** `troupe -p`: one prompt, one answer. stdout carries only the answer (or the events). */
export async function promptCommand(flags: Arguments, launcher: Launcher): Promise<ExitCode> {
  const runtime = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const given = withOwnDefaults(flags, runtime.home);
  const format = wantsJson(given) ? "json" : "text";
  const silent = given.has("silent");
  const waitMs = agentWaitMs(process.env);
  const asked = sessionRequest(given, format);
  const request = await asChild({
    ...asked,
    agents: { ...asked.agents, waitMs },
    tools: { ...asked.tools, waitForServers: true },
  });
  const input = await readInput(given, silent);

  const bar = progressOf(given, { waitMs, stdoutIsBusy: format === "json" });
  const session = await openSession(runtime, given, request);
  const stopAsking = await attachTerminal(given, session, bar);
  // If the reader disconnected, the session and its background agents stop.
  const out = output(process.stdout, () => void session.close());
  const answers = answersOf(out, bar, format);
  let isInterrupted = false;
  const removeInterrupt = onInterrupt(() => {
    isInterrupted = true;
    void session.close();
  });
  try {
    const prompt = await promptOf(input, session.workspace.services?.filesFolder ?? "");
    const released = showEvents(session, { prompt, format, given, bar, out, answers });
    const how = { ...prompt.how, ...autopilotOptions(given), attachments: await filesOf(input, request.cwd) };
    const submitted = await submit(session, prompt.text, how).then(released, failedSubmit);
    const { outcome, verdict, said } = resultOf(submitted);
    const left = busyAgents(session);
    bar.stop();
    if (format === "text" && said !== undefined) out.answer(said);
    else if (format === "text" && outcome.kind === "done") answers.answer(outcome.answer || summaryOf(verdict));
    const exitCode = exitCodeOf(outcome, verdict);
    if (said !== undefined) await whileScheduled(session, { answers, format, silent });
    await closeAfter(session, outcome);
    await out.flushed();
    if (format === "json") out.line(resultLine({ session, outcome, verdict, left, exitCode }));
    await out.flushed();
    const unmerged = silent ? [] : await unmergedTasks(worktreesFolder(runtime.home, session.id));
    for (const line of finalLines({ session, outcome, verdict, unmerged, silent })) sayLines(line);
    await share(given, runtime, session);
    // Interrupted work is reported even with --silent, unless the wait was disabled.
    const why = whyLeft({ isInterrupted: isInterrupted || outcome.kind === "aborted", waitMs });
    if (!silent || waitMs > 0) for (const line of leftLines(left, { session, why })) printMessage(line);
    return out.failure ? unwritten(out.failure) : exitCode;
  } finally {
    stopAsking();
    removeInterrupt();
    // The reason for a failed close was reported above, or another error is being thrown.
    await session.close().catch(() => undefined);
    if (isEmpty(session)) await runtime.store.remove(session.id).catch(() => undefined);
    await runtime.close();
  }
}

/** Writes the session to the file of `--share`, whatever the outcome. */
async function share(given: Arguments, { store }: Runtime, { id }: Session): Promise<void> {
  const file = given.text("share");
  if (file === undefined) return;
  await (await import("./share.ts")).shareSession(store, id, file);
  if (!given.has("silent")) printMessage(`session written to ${file}`);
}

function answersOf(out: Output, bar: ProgressOutput, format: "text" | "json"): AnswerOutput {
  const { stdout, env } = process;
  if (format === "json" || !stdout.isTTY) return wholeAnswers(out);
  const colour = !env.NO_COLOR && env.TERM !== "dumb";
  return liveAnswers({ out, bar, colour, columns: () => stdout.columns || 80 });
}

/** Asks a user at a terminal about calls that no rule decides, and the forms of MCP servers, one after the other. */
async function attachTerminal(given: Arguments, session: Session, bar: ProgressOutput): Promise<() => void> {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY || given.has("silent")) return () => undefined;
  const turns = { last: Promise.resolve() };
  const stops: (() => void)[] = [];
  if (!given.has("no-ask-user")) {
    const { terminalForms } = await import("./fill-form.ts");
    stops.push(session.requests.attach(terminalForms({ input, output, turns, pause: () => bar.pause() })));
  }
  // Autopilot works without a user.
  if (session.mainAgent.modes.current !== "autopilot") {
    const { askForApproval } = await import("./approvals.ts");
    stops.push(askForApproval(session, { terminal: { input, output }, bar, turns }));
  }
  return () => {
    for (const stop of stops) stop();
  };
}

/** True for a new session without messages or choices: a command printed its own output, or does not exist. */
const isEmpty = ({ record, events }: Session): boolean =>
  record.inherited === 0 && !events.some(({ type }) => KEPT.test(type));

const KEPT =
  /^(?:user\.|assistant\.|tool\.|session\.(?:mode_changed|error|schedule)|subagent\.|troupe\.(?:schedule|task|rewound))/;

/** Adapts the request of a process that a closing session started to consolidate its learnings. */
async function asChild(request: SessionRequest): Promise<SessionRequest> {
  if (!process.env.TROUPE_DETACHED_PARENT_SESSION_ID) return request;
  return (await import("../runtime/knowledge/consolidate.ts")).detachedRequest(process.env, request);
}

/** An agent that ends with `task_complete` often puts its whole answer there. */
const summaryOf = (verdict: AutopilotVerdict | undefined): string =>
  verdict && "summary" in verdict ? (verdict.summary ?? "") : "";

/** Returns the exit code for an answer that could not be written. */
function unwritten(failure: NodeJS.ErrnoException): ExitCode {
  if (failure.code === "EPIPE") return exitCodes.interrupted;
  printMessage(`the answer could not be written to stdout: ${failure.message}`);
  return exitCodes.failed;
}

/** The cause of a failed run may also make the close fail. The run's own failure is then reported. */
async function closeAfter(session: Session, outcome: Outcome): Promise<void> {
  if (outcome.kind !== "failed") return session.close();
  await session.close({ error: outcome.error.message }).catch(() => undefined);
}

/** Shows the progress and the answer as they come, or writes the events. Call the result with the end of the prompt. */
function showEvents(
  session: Session,
  how: {
    prompt: Prompt;
    format: "text" | "json";
    given: Arguments;
    bar: ProgressOutput;
    out: Output;
    answers: AnswerOutput;
  },
): (submitted: SubmitResult) => SubmitResult {
  const { prompt, format, given, bar, out, answers } = how;
  const deltas = given.choice("stream", ["on", "off"]) === "on";
  // A mistyped command prints nothing on stdout, so events are held until the command is known to exist.
  let held: object[] | undefined = prompt.how.isTyped && prompt.text.trimStart().startsWith("/") ? [] : undefined;
  const release = (): void => {
    for (const event of held ?? []) out.line(event);
    held = undefined;
  };
  watch(session, bar, (event) => {
    answers.show(event);
    if (format !== "json" || (!deltas && event.type.endsWith("_delta"))) return;
    if (event.type === "user.message") release();
    if (held) held.push(event);
    else out.line(event);
  });
  return (submitted) => {
    release();
    return submitted;
  };
}

/** Returns the outcome of a prompt; `said` if a command printed its own output. */
function resultOf(submitted: SubmitResult): { outcome: Outcome; verdict?: AutopilotVerdict; said?: string } {
  if (submitted.kind === "answered") return submitted;
  return { outcome: { kind: "done", answer: submitted.text }, said: submitted.text };
}

function failedSubmit(cause: unknown): SubmitResult {
  if (cause instanceof TroupeError && cause.kind === "usage") throw cause;
  const error = cause instanceof Error ? cause : new Error(String(cause));
  return { kind: "answered", outcome: { kind: "failed", error } };
}

function autopilotOptions(given: Arguments): AutopilotOptions {
  const check = given.text("check");
  const maxContinues = given.amount("max-autopilot-continues", "count");
  return defined({ check, maxContinues });
}

/** The typed prompt and its data. */
interface Prompt {
  readonly text: string;
  readonly how: Pick<PromptSubmitOptions, "withData" | "isTyped">;
}

/** Converts the flags to a session request. */
export function sessionRequest(given: Arguments, format: "text" | "json"): SessionRequest {
  const available = given.list("available-tools");
  const isSeen = process.stdout.isTTY === true || (process.stderr.isTTY === true && !given.has("silent"));
  const hasAny = (...flags: string[]): boolean => flags.some((flag) => given.has(flag));
  return {
    cwd: process.cwd(),
    name: given.text("name"),
    mode: modeOf(given),
    model: {
      name: given.text("model"),
      reasoningEffort: given.choice("effort", ["low", "medium", "high", "xhigh", "max"]),
      streaming: format === "json" ? given.choice("stream", ["on", "off"]) === "on" : isSeen,
    },
    limits: defined({
      turns: given.amount("max-turns", "whole") || undefined,
      tokens: given.amount("max-tokens", "whole") || undefined,
      costUsd: given.amount("max-cost", "any") || undefined,
    }),
    tools: { choice: { ...(available.length > 0 && { available }), excluded: given.list("excluded-tools") } },
    permissions: {
      paths: hasAny("allow-all-paths", "allow-all", "yolo") ? "all" : given.list("add-dir"),
      allowTools: given.list("allow-tool"),
      denyTools: given.list("deny-tool"),
      allowUrls: given.list("allow-url"),
      denyUrls: given.list("deny-url"),
      consentPaths: given.list("allow-consent-path"),
      allTools: hasAny("allow-all-tools", "allow-all", "yolo"),
      allUrls: hasAny("allow-all-urls", "allow-all", "yolo"),
    },
    context: { memory: given.has("enable-memory") ? { enabled: true } : undefined },
    agents: { main: given.text("agent") },
    client: { askUser: given.has("no-ask-user") ? false : undefined },
    workspace: {
      trustFolder: given.has("trust-folder"),
      pluginDirectories: pluginFolders(given),
      mcpConfig: given.list("additional-mcp-config"),
      disabledMcpServers: given.list("disable-mcp-server"),
      ...(given.has("no-custom-instructions") && { customInstructions: false }),
    },
  };
}

function modeOf(given: Arguments): SessionRequest["mode"] {
  const mode = given.text("mode");
  const isAsked = mode !== undefined || given.has("autopilot") || given.has("plan");
  if (!isAsked) return undefined;
  const flags = { autopilot: given.has("autopilot"), plan: given.has("plan") };
  return initialMode({ ...flags, ...defined({ mode }) });
}

/** How long a process that holds an idle session may take to release it. */
export const HAND_OVER_WAIT_MS = 2_000;

async function openSession(runtime: Runtime, given: Arguments, request: SessionRequest): Promise<Session> {
  const resume = given.text("resume");
  const sessionId = given.text("session-id");
  const chosen = [resume !== undefined, given.has("continue"), sessionId !== undefined].filter(Boolean).length;
  if (chosen > 1) throw usage("Use only one of --resume, --continue and --session-id.");
  const asked = { ...request, resume: { patienceMs: HAND_OVER_WAIT_MS } };
  if (resume !== undefined) {
    const found = await findSession(runtime.store, resume);
    await sayMove(runtime, found, given);
    return runtime.resumeSession(found, asked);
  }
  if (given.has("continue")) {
    const { workingDirectory } = await import("../context/working-directory.ts");
    return runtime.resumeSession(await lastSession(runtime.store, workingDirectory(request.cwd)), asked);
  }
  if (sessionId !== undefined && (await runtime.store.ids()).includes(sessionId)) {
    await sayMove(runtime, sessionId, given);
    return runtime.resumeSession(sessionId, asked);
  }
  return runtime.createSession({ ...request, ...defined({ sessionId }) });
}

/** Warns if a resumed session belongs to another project: its tools now work in this folder. */
async function sayMove({ store }: Runtime, sessionId: string, given: Arguments): Promise<void> {
  const { workingDirectory } = await import("../context/working-directory.ts");
  const here = workingDirectory(process.cwd());
  const summary = (await store.list()).find((one) => one.sessionId === sessionId);
  if (given.has("silent") || summary === undefined || isInDirectory(summary, here)) return;
  printMessage(`session ${sessionId} worked in ${summary.cwd}; it continues in ${here.cwd}`);
}

/** The typed prompt and the piped input. */
interface Input {
  readonly typed: string | undefined;
  readonly piped: Buffer | undefined;
}

async function readInput(given: Arguments, silent: boolean): Promise<Input> {
  const typed = given.text("prompt");
  const patient = given.words.includes("-") || typed === undefined;
  const piped = await readPiped({ patient });
  if (piped.kind === "silent" && !silent) {
    printMessage("nothing was piped in within 3 s, continuing without it (add - to wait)");
  }
  const bytes = piped.kind === "data" ? piped.bytes : undefined;
  if ((typed ?? (bytes ? "piped" : "")).trim() === "") {
    throw usage(
      typed === undefined ? 'There is nothing to do. Give a prompt: troupe -p "<prompt>"' : "The prompt is empty.",
    );
  }
  return { typed, piped: bytes };
}

/** Files that the typed prompt names with `@`, as in the terminal. Piped input names none. */
async function filesOf({ typed = "" }: Input, cwd: string): Promise<PromptSubmitOptions["attachments"]> {
  if (!typed.includes("@")) return undefined;
  const files = await (await import("../terminal/input/mentions.ts")).mentionedIn(typed, cwd);
  return files.length === 0 ? undefined : [...files];
}

/** Piped input is data. With a prompt it is appended; alone it is the prompt. It is never parsed as a command. */
async function promptOf({ typed, piped }: Input, folder: string): Promise<Prompt> {
  const data = piped && (fitsPrompt(piped) || folder === "" ? piped.toString("utf8") : await spillPiped(piped, folder));
  const withData = (text: string): string => (data === undefined || typed === undefined ? text : withPiped(text, data));
  return { text: typed ?? data ?? "", how: { withData, isTyped: typed !== undefined } };
}
