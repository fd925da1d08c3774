/**
 * Autopilot: what happens each time the agent stops. It goes on until the agent has called `task_complete` and the
 * check, if one was given, agrees; or until it is stopped, out of budget, or makes no progress. The policy is a pure
 * function over what was seen of the last run; `fly` carries it out through ports.
 */
import { filledIn } from "../../commands/lines.ts";
import { quoted } from "../../lib/quoting.ts";
import { clip, fenced } from "../../lib/text.ts";
import checkFailedText from "./autopilot-check-failed.md";
import reminderText from "./autopilot-reminder.md";

const DEFAULT_MAX_CONTINUES = 5;
/** So many continuations in a row without any progress are the end. */
const MAX_STILL = 2;
const MAX_CHECK_OUTPUT_CHARACTERS = 4000;
const MAX_COMMAND_CHARACTERS = 1000;

export interface AutopilotOptions {
  /** How often the agent is sent on; `--max-autopilot-continues`. */
  readonly maxContinues?: number;
  /** Run by troupe itself once the agent says it is done; `--check`. */
  readonly check?: string;
  /** Without a check that passed, the end is `unverified`. */
  readonly verification?: "required" | "optional";
}

/** How one answer of the agent ended, with what is needed to judge it: see `runFacts`. */
export type Stop =
  | {
      readonly kind: "done";
      readonly facts: RunFacts;
      /** Messages or agents at work that will set the agent going again without our help. */
      readonly pending: boolean;
      /** Autopilot may have been switched off meanwhile. */
      readonly autopilot: boolean;
    }
  | { readonly kind: "aborted" }
  | { readonly kind: "limit"; readonly message: string }
  | { readonly kind: "error"; readonly message: string };

export interface RunFacts {
  /** Set when the agent declared the task complete. */
  readonly completed?: { readonly summary?: string };
  readonly answer: string;
  /** What was called, as one comparable text; empty when nothing was. */
  readonly calls: string;
  /** Files or todos changed, by whichever agent. */
  readonly changed: boolean;
}

export interface CheckResult {
  /** Null when it was killed, ran out of time or could not be started. */
  readonly exitCode: number | null;
  readonly output: string;
}

export type Verdict =
  | { readonly kind: "complete"; readonly verified: boolean; readonly summary?: string }
  | { readonly kind: "unverified"; readonly reason: string; readonly summary?: string }
  | { readonly kind: "blocked"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "out_of_budget"; readonly reason: string }
  /** Stopped by a person, or no longer in autopilot: there is nothing to judge. */
  | { readonly kind: "aborted" }
  | { readonly kind: "left" };

export type Step =
  | { readonly kind: "send"; readonly message: string }
  | { readonly kind: "check"; readonly command: string; readonly summary?: string }
  /** The agent goes on by itself; judge its next stop. */
  | { readonly kind: "wait" }
  | { readonly kind: "end"; readonly verdict: Verdict };

export interface Flight {
  readonly continues: number;
  readonly still: number;
  readonly last?: RunFacts;
  /** How the last check ended, for people. */
  readonly lastCheck?: string;
}

export const departure: Flight = { continues: 0, still: 0 };

/** After the agent has stopped. */
export function afterStop(flight: Flight, stop: Stop, options: AutopilotOptions): [Flight, Step] {
  if (stop.kind !== "done") return [flight, { kind: "end", verdict: verdictOf(stop) }];
  const { facts } = stop;
  if (facts.completed) return afterCompletion(seen(flight, facts), facts.completed.summary, options);
  if (!stop.autopilot) return [flight, { kind: "end", verdict: { kind: "left" } }];
  const next = seen(flight, facts);
  // What was done before the agent is woken again is remembered; a rest is no lack of progress.
  if (stop.pending) return [{ ...next, still: 0 }, { kind: "wait" }];
  return goOn(next, reminderText.trim(), options, {
    kind: "out_of_budget",
    reason: `the task was not marked complete after ${maxContinues(options)} continuations`,
  });
}

/** After the check has run. */
function afterCheck(
  flight: Flight,
  check: { readonly result: CheckResult; readonly summary?: string },
  options: AutopilotOptions,
): [Flight, Step] {
  const { result, summary } = check;
  const said = summary === undefined ? {} : { summary };
  if (result.exitCode === 0) {
    return [flight, { kind: "end", verdict: { kind: "complete", verified: true, ...said } }];
  }
  const { check: command = "" } = options;
  if (result.exitCode === null && result.output === "") {
    const reason = "the check could not be run to its end";
    return [flight, { kind: "end", verdict: { kind: "unverified", reason, ...said } }];
  }
  const reason = checkText(command, result);
  if (result.exitCode === CANNOT_RUN || result.exitCode === NOT_FOUND) {
    return [flight, { kind: "end", verdict: { kind: "unverified", reason, ...said } }];
  }
  const next = { ...flight, lastCheck: reason };
  return goOn(next, checkMessage(command, result), options, { kind: "failed", reason });
}

/** What a shell says of a command that it could not start. */
const CANNOT_RUN = 126;
const NOT_FOUND = 127;

/** The verdict of a check alone, where nobody is sent on. */
export function checkVerdict(command: string, result: CheckResult): Verdict {
  const [, step] = afterCheck(departure, { result }, { check: command, maxContinues: 0 });
  return step.kind === "end" ? step.verdict : { kind: "failed", reason: checkText(command, result) };
}

export interface FlightPorts {
  /** Tells the agent something that people are not shown, and resolves when it has stopped again. */
  send(message: string): Promise<Stop>;
  /** Resolves when the agent, which was set going by something else, has stopped again. */
  nextStop(): Promise<Stop>;
  /** Never rejects; bounded in time and output. */
  runCheck(command: string): Promise<CheckResult>;
  /** Called for a failed check after which the agent is sent on. */
  checkFailed?(text: string): void;
}

/** From the first stop of the agent to the verdict. */
export async function fly(first: Stop, options: AutopilotOptions, ports: FlightPorts): Promise<Verdict> {
  let [flight, step] = afterStop(departure, first, options);
  for (;;) {
    switch (step.kind) {
      case "end":
        return step.verdict;
      case "check": {
        const { kind: _, command, ...said } = step;
        const result = await ports.runCheck(command);
        [flight, step] = afterCheck(flight, { result, ...said }, options);
        if (step.kind === "send") ports.checkFailed?.(checkText(command, result));
        break;
      }
      case "send":
        [flight, step] = afterStop(flight, await ports.send(step.message), options);
        break;
      case "wait":
        [flight, step] = afterStop(flight, await ports.nextStop(), options);
    }
  }
}

/** One sentence for people. */
export function verdictText(verdict: Verdict): string {
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

function afterCompletion(flight: Flight, summary: string | undefined, options: AutopilotOptions): [Flight, Step] {
  const said = summary === undefined ? {} : { summary };
  if (options.check !== undefined) {
    if (flight.still >= MAX_STILL) {
      const last = flight.lastCheck === undefined ? "" : `; ${flight.lastCheck}`;
      return [flight, blocked(`the check keeps failing and nothing changes${last}`)];
    }
    return [flight, { kind: "check", command: options.check, ...said }];
  }
  const verdict: Verdict =
    options.verification === "required"
      ? { kind: "unverified", reason: "no check was given", ...said }
      : { kind: "complete", verified: false, ...said };
  return [flight, { kind: "end", verdict }];
}

/** Sends the agent on, unless that has been no use, or has been done often enough. */
function goOn(flight: Flight, message: string, options: AutopilotOptions, otherwise: Verdict): [Flight, Step] {
  if (flight.still >= MAX_STILL) {
    return [flight, blocked(`no progress in ${MAX_STILL} continuations: nothing changed and nothing new was tried`)];
  }
  if (flight.continues >= maxContinues(options)) return [flight, { kind: "end", verdict: otherwise }];
  return [
    { ...flight, continues: flight.continues + 1 },
    { kind: "send", message },
  ];
}

/** Counts a continuation that did nothing new: no file or todo changed, and no call, or the same calls or words again. */
function seen(flight: Flight, facts: RunFacts): Flight {
  const { last, continues, still, lastCheck } = flight;
  const isRepeated = facts.calls === "" || facts.calls === last?.calls || facts.answer === last?.answer;
  const isStill = continues > 0 && !facts.changed && isRepeated;
  return { continues, still: isStill ? still + 1 : 0, last: facts, ...(lastCheck !== undefined && { lastCheck }) };
}

function verdictOf(stop: Exclude<Stop, { kind: "done" }>): Verdict {
  switch (stop.kind) {
    case "aborted":
      return { kind: "aborted" };
    case "limit":
      return { kind: "out_of_budget", reason: stop.message };
    case "error":
      return { kind: "failed", reason: stop.message };
  }
}

function blocked(reason: string): Step {
  return { kind: "end", verdict: { kind: "blocked", reason } };
}

function maxContinues({ maxContinues: limit = DEFAULT_MAX_CONTINUES }: AutopilotOptions): number {
  return limit;
}

function checkMessage(command: string, result: CheckResult): string {
  return filledIn(checkFailedText, {
    command: fenced(clip(command, MAX_COMMAND_CHARACTERS)),
    ending: ending(result),
    output: fenced(lastCharacters(quoted(result.output), MAX_CHECK_OUTPUT_CHARACTERS) || "(nothing)"),
  });
}

function ending({ exitCode }: CheckResult): string {
  return exitCode === null ? "no exit code (it was killed or ran out of time)" : `exit code ${exitCode}`;
}

/** For people: what was run, how it ended, and its last words. */
function checkText(command: string, result: CheckResult): string {
  const lines = result.output.trimEnd().split("\n").slice(-SHOWN_LINES);
  const shown = lines.map((line) => `  ${clip(line.trimEnd(), MAX_SHOWN_LINE)}`).join("\n");
  const how = `the check \`${clip(command, MAX_SHOWN_LINE)}\` ended with ${ending(result)}`;
  return shown.trim() === "" ? how : `${how}:\n${shown}`;
}

const SHOWN_LINES = 20;
const MAX_SHOWN_LINE = 200;

/** The end of it matters most: there a failing command says why. */
function lastCharacters(text: string, count: number): string {
  const trimmed = text.trimEnd();
  if (trimmed.length <= count) return trimmed;
  const tail = trimmed.slice(-count).replace(/^[\udc00-\udfff]/, "");
  return `[${trimmed.length - tail.length} characters before this are left out]\n${tail}`;
}
