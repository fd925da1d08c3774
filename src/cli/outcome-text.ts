import { plural } from "../lib/text.ts";
import { TroupeError, withHint } from "../protocol/errors.ts";
import { type Verdict, verdictText } from "../session/autopilot.ts";
import type { Outcome, Session } from "../session/session.ts";
import { costText, turnsText } from "./agent-usage.ts";
import type { ExitCode } from "./exit-codes.ts";

/** The last line of JSON output: what became of the prompt, and what it used. */
export function resultLine(what: {
  session: Session;
  outcome: Outcome;
  verdict?: Verdict | undefined;
  /** Agents that were not waited for any longer. */
  left: readonly string[];
  exitCode: ExitCode;
}): object {
  const { session, outcome, verdict, left, exitCode } = what;
  const { agents } = session.run;
  const { calls, usage, costUsd, durationMs } = session.budget.run;
  return {
    type: "result",
    sessionId: session.id,
    exitCode,
    outcome: outcome.kind,
    ...(outcome.kind === "done" && { answer: outcome.answer }),
    ...("error" in outcome && { error: outcome.error.message }),
    ...(outcome.kind === "limit" && { error: outcome.reached.message }),
    ...(verdict && { verdict }),
    usage: { turns: calls, ...usage, durationMs },
    costUsd,
    ...(agents.length > 0 && { agents }),
    ...(left.length > 0 && { unfinishedAgents: left }),
  };
}

/** What stderr says at the end: why it did not work out, what was used, how to go on. */
export function finalLines(what: {
  session: Session;
  outcome: Outcome;
  verdict?: Verdict | undefined;
  silent: boolean;
}): string[] {
  const { session, outcome, verdict, silent } = what;
  const trouble = [...troubleOf(outcome), ...judgement(session, verdict, { silent })];
  const resume = outcome.kind === "done" || !session.isKept ? [] : [`to go on: troupe --resume ${session.id} -p "…"`];
  return [...trouble, ...(silent ? [] : [...proposals(session), ...changes(session), usageLine(session), ...resume])];
}

/** Files that this session changed, where this run did something. Known once the session is closed. */
function changes({ events, inherited }: Session): string[] {
  const own = events.slice(inherited);
  const end = own.findLast(({ type }) => type === "session.shutdown");
  const ran = own.some(({ type }) => type === "tool.execution_start");
  if (end?.type !== "session.shutdown" || !ran) return [];
  const { filesModified, linesAdded, linesRemoved } = end.data.codeChanges;
  if (filesModified.length === 0) return [];
  return [`${plural(filesModified.length, "file")} +${linesAdded} −${linesRemoved} (troupe diff, troupe undo)`];
}

/** Facts that nobody was shown wait for a person. */
function proposals({ run: { proposals: count } }: Session): string[] {
  return count === 0 ? [] : [`${plural(count, "fact")} proposed to be remembered: troupe memory list`];
}

/** Bad news is told in any case. */
function judgement(session: Session, verdict: Verdict | undefined, { silent }: { silent: boolean }): string[] {
  if (verdict === undefined || verdict.kind === "aborted" || (verdict.kind === "complete" && silent)) return [];
  if (verdict.kind === "left" || session.modes.current === "autopilot") return [`autopilot: ${verdictText(verdict)}`];
  return [verdict.kind === "complete" ? "the check passed" : verdictText(verdict)];
}

function troubleOf(outcome: Outcome): string[] {
  switch (outcome.kind) {
    case "done":
      return [];
    case "aborted":
      return ["interrupted; everything up to here is kept"];
    case "limit":
      return [outcome.reached.message];
    case "error":
    case "failed": {
      const { error } = outcome;
      const hint = "hint" in error && typeof error.hint === "string" ? error.hint : undefined;
      return [isDefect(outcome) ? defectText(error) : oneLine(withHint(error.message, hint))];
    }
  }
}

const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ");

function isDefect(outcome: Extract<Outcome, { error: Error }>): boolean {
  return outcome.kind === "error" ? outcome.error.kind === "internal" : !(outcome.error instanceof TroupeError);
}

/** The stack of what went wrong first. */
function defectText(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error;
  return `this is a defect in troupe, please report it:\n${cause.stack ?? cause.message}`;
}

function usageLine(session: Session): string {
  const { calls, usage, costUsd } = session.budget.run;
  const tokens = usage.inputTokens + usage.outputTokens;
  const cost = costUsd === null ? "price unknown" : costUsd === 0 ? "no cost" : `$${costUsd.toFixed(4)}`;
  const { agents } = session.run;
  const who = agents.length === 0 ? "" : ` (${turnsText(agents)})`;
  const costs = costText(agents);
  const spent = `${tokens.toLocaleString("en-US")} tokens, ${cost}${costs === "" ? "" : ` (${costs})`}`;
  return `${plural(calls, "turn")}${who}, ${spent}, session ${session.id}`;
}
