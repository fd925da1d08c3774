/**
 * Autopilot: decides what happens each time the agent stops.
 * It continues until the agent has called `task_complete` and the check, if any, has passed. It ends early if it is
 * stopped, out of budget, or makes no progress.
 * The policy is a pure function of the last run's facts; `runAutopilot` executes it through ports.
 */

import { filledIn } from "../../commands/lines.ts";
import { defined } from "../../lib/defined.ts";
import { quoted } from "../../lib/quoting.ts";
import { clip, fenceText } from "../../lib/text.ts";
import checkFailedText from "./autopilot-check-failed.md";
import reminderText from "./autopilot-reminder.md";

const DEFAULT_MAX_CONTINUES = 5;
/** Autopilot ends after this many consecutive continuations without progress. */
const MAX_STILL = 2;
const MAX_CHECK_OUTPUT_CHARACTERS = 4000;
const MAX_COMMAND_CHARACTERS = 1000;

export interface AutopilotOptions {
  /** The maximum number of continuations; `--max-autopilot-continues`. */
  readonly maxContinues?: number;
  /** Command that troupe runs when the agent reports that it is done; `--check`. */
  readonly check?: string;
  /** `required`: without a passed check, the result is `unverified`. */
  readonly verification?: "required" | "optional";
}

/** The end of one answer, with the facts needed to judge it: see `RunFactsFold`. */
export type AutopilotStop =
  | {
      readonly kind: "done";
      readonly facts: RunFacts;
      /** Messages or running agents that will wake the agent anyway. */
      readonly pending: boolean;
      /** False if autopilot was switched off meanwhile. */
      readonly autopilot: boolean;
    }
  | { readonly kind: "aborted" }
  | { readonly kind: "limit"; readonly message: string }
  | { readonly kind: "error"; readonly message: string };

export interface RunFacts {
  /** Set if the agent declared the task complete. */
  readonly completed?: { readonly summary?: string };
  readonly answer: string;
  /** The calls as one comparable text; empty if there were none. */
  readonly calls: string;
  /** Whether any agent changed files or todos. */
  readonly changed: boolean;
}

export interface CheckResult {
  /** Null if it was killed, timed out or could not be started. */
  readonly exitCode: number | null;
  readonly output: string;
}

export type AutopilotVerdict =
  | { readonly kind: "complete"; readonly verified: boolean; readonly summary?: string }
  | { readonly kind: "unverified"; readonly reason: string; readonly summary?: string }
  | { readonly kind: "blocked"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "out_of_budget"; readonly reason: string }
  /** Stopped by the user, or autopilot was switched off: there is nothing to judge. */
  | { readonly kind: "aborted" }
  | { readonly kind: "left" };

export type AutopilotStep =
  | { readonly kind: "send"; readonly message: string }
  | { readonly kind: "check"; readonly command: string; readonly summary?: string }
  /** The agent continues without help; judge its next stop. */
  | { readonly kind: "wait" }
  | { readonly kind: "end"; readonly verdict: AutopilotVerdict };

export interface AutopilotState {
  readonly continues: number;
  readonly still: number;
  readonly last?: RunFacts;
  /** The result of the last check, for users. */
  readonly lastCheck?: string;
}

export const initialState: AutopilotState = { continues: 0, still: 0 };

/** Returns the next step after the agent has stopped. */
export function afterStop(
  state: AutopilotState,
  stop: AutopilotStop,
  options: AutopilotOptions,
): [AutopilotState, AutopilotStep] {
  if (stop.kind !== "done") return [state, { kind: "end", verdict: verdictOf(stop) }];
  const { facts } = stop;
  if (facts.completed) return afterCompletion(updateState(state, facts), facts.completed.summary, options);
  if (!stop.autopilot) return [state, { kind: "end", verdict: { kind: "left" } }];
  const next = updateState(state, facts);
  // Remember this run until the agent is woken again. Waiting does not count as a lack of progress.
  if (stop.pending) return [{ ...next, still: 0 }, { kind: "wait" }];
  return goOn(next, reminderText.trim(), options, {
    kind: "out_of_budget",
    reason: `the task was not marked complete after ${maxContinues(options)} continuations`,
  });
}

/** Returns the next step after the check has run. */
function afterCheck(
  state: AutopilotState,
  check: { readonly result: CheckResult; readonly summary?: string },
  options: AutopilotOptions,
): [AutopilotState, AutopilotStep] {
  const { result, summary } = check;
  const summaryPart = summary === undefined ? {} : { summary };
  if (result.exitCode === 0) {
    return [state, { kind: "end", verdict: { kind: "complete", verified: true, ...summaryPart } }];
  }
  const { check: command = "" } = options;
  if (result.exitCode === null && result.output === "") {
    const reason = "the check could not be run to its end";
    return [state, { kind: "end", verdict: { kind: "unverified", reason, ...summaryPart } }];
  }
  const reason = checkText(command, result);
  if (result.exitCode === CANNOT_RUN || result.exitCode === NOT_FOUND) {
    return [state, { kind: "end", verdict: { kind: "unverified", reason, ...summaryPart } }];
  }
  const next = { ...state, lastCheck: reason };
  return goOn(next, checkMessage(command, result), options, { kind: "failed", reason });
}

/** Exit codes of a shell for a command that it could not start. */
const CANNOT_RUN = 126;
const NOT_FOUND = 127;

/** Returns the verdict of a check without continuing the agent. */
export function checkVerdict(command: string, result: CheckResult): AutopilotVerdict {
  const [, step] = afterCheck(initialState, { result }, { check: command, maxContinues: 0 });
  return step.kind === "end" ? step.verdict : { kind: "failed", reason: checkText(command, result) };
}

export interface AutopilotPorts {
  /** Sends the agent a message that users do not see. Resolves when it has stopped again. */
  send(message: string): Promise<AutopilotStop>;
  /** Resolves when the agent, woken by something else, has stopped again. */
  nextStop(): Promise<AutopilotStop>;
  /** Never rejects; bounded in time and output. */
  runCheck(command: string): Promise<CheckResult>;
  /** Called for a failed check after which the agent continues. */
  checkFailed?(text: string): void;
}

/** Runs autopilot from the first stop of the agent to the verdict. */
export async function runAutopilot(
  first: AutopilotStop,
  options: AutopilotOptions,
  ports: AutopilotPorts,
): Promise<AutopilotVerdict> {
  let [state, step] = afterStop(initialState, first, options);
  for (;;) {
    switch (step.kind) {
      case "end":
        return step.verdict;
      case "check": {
        const { kind: _, command, ...summaryPart } = step;
        const result = await ports.runCheck(command);
        [state, step] = afterCheck(state, { result, ...summaryPart }, options);
        if (step.kind === "send") ports.checkFailed?.(checkText(command, result));
        break;
      }
      case "send":
        [state, step] = afterStop(state, await ports.send(step.message), options);
        break;
      case "wait":
        [state, step] = afterStop(state, await ports.nextStop(), options);
    }
  }
}

/** Returns one sentence for users. */
export function verdictText(verdict: AutopilotVerdict): string {
  switch (verdict.kind) {
    case "complete":
      return verdict.verified ? "complete; the check passed" : "complete";
    case "aborted":
      return "stopped";
    case "left":
      return "autopilot was switched off";
    case "out_of_budget":
      return `out of budget: ${verdict.reason}`;
    default:
      return `${verdict.kind}: ${verdict.reason}`;
  }
}

function afterCompletion(
  state: AutopilotState,
  summary: string | undefined,
  options: AutopilotOptions,
): [AutopilotState, AutopilotStep] {
  const summaryPart = summary === undefined ? {} : { summary };
  if (options.check !== undefined) {
    if (state.still >= MAX_STILL) {
      const last = state.lastCheck === undefined ? "" : `; ${state.lastCheck}`;
      return [state, endBlocked(`the check keeps failing and nothing changes${last}`)];
    }
    return [state, { kind: "check", command: options.check, ...summaryPart }];
  }
  const verdict: AutopilotVerdict =
    options.verification === "required"
      ? { kind: "unverified", reason: "no check was given", ...summaryPart }
      : { kind: "complete", verified: false, ...summaryPart };
  return [state, { kind: "end", verdict }];
}

/** Continues the agent, unless there was no progress or the maximum is reached. */
function goOn(
  state: AutopilotState,
  message: string,
  options: AutopilotOptions,
  otherwise: AutopilotVerdict,
): [AutopilotState, AutopilotStep] {
  if (state.still >= MAX_STILL) {
    return [state, endBlocked(`no progress in ${MAX_STILL} continuations: nothing changed and nothing new was tried`)];
  }
  if (state.continues >= maxContinues(options)) return [state, { kind: "end", verdict: otherwise }];
  return [
    { ...state, continues: state.continues + 1 },
    { kind: "send", message },
  ];
}

/** Counts a continuation without progress: no file or todo changed, and no calls, or the same calls or answer again. */
function updateState(state: AutopilotState, facts: RunFacts): AutopilotState {
  const { last, continues, still, lastCheck } = state;
  const isRepeated = facts.calls === "" || facts.calls === last?.calls || facts.answer === last?.answer;
  const isStill = continues > 0 && !facts.changed && isRepeated;
  return { continues, still: isStill ? still + 1 : 0, last: facts, ...defined({ lastCheck }) };
}

function verdictOf(stop: Exclude<AutopilotStop, { kind: "done" }>): AutopilotVerdict {
  switch (stop.kind) {
    case "aborted":
      return { kind: "aborted" };
    case "limit":
      return { kind: "out_of_budget", reason: stop.message };
    case "error":
      return { kind: "failed", reason: stop.message };
  }
}

function endBlocked(reason: string): AutopilotStep {
  return { kind: "end", verdict: { kind: "blocked", reason } };
}

function maxContinues({ maxContinues: limit = DEFAULT_MAX_CONTINUES }: AutopilotOptions): number {
  return limit;
}

function checkMessage(command: string, result: CheckResult): string {
  return filledIn(checkFailedText, {
    command: fenceText(clip(command, MAX_COMMAND_CHARACTERS)),
    ending: ending(result),
    output: fenceText(lastCharacters(quoted(result.output), MAX_CHECK_OUTPUT_CHARACTERS) || "(nothing)"),
  });
}

function ending({ exitCode }: CheckResult): string {
  return exitCode === null ? "no exit code (it was killed or ran out of time)" : `exit code ${exitCode}`;
}

/** Returns the command, its result and its last output, for users. */
function checkText(command: string, result: CheckResult): string {
  const lines = result.output.trimEnd().split("\n").slice(-SHOWN_LINES);
  const shown = lines.map((line) => `  ${clip(line.trimEnd(), MAX_SHOWN_LINE)}`).join("\n");
  const how = `the check \`${clip(command, MAX_SHOWN_LINE)}\` ended with ${ending(result)}`;
  return shown.trim() === "" ? how : `${how}:\n${shown}`;
}

const SHOWN_LINES = 20;
const MAX_SHOWN_LINE = 200;

/** Returns the end of the text, which usually states why a command failed. */
function lastCharacters(text: string, count: number): string {
  const trimmed = text.trimEnd();
  if (trimmed.length <= count) return trimmed;
  const tail = trimmed.slice(-count).replace(/^[\udc00-\udfff]/, "");
  return `[${trimmed.length - tail.length} characters before this are left out]\n${tail}`;
}
