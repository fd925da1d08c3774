import { join, relative, sep } from "node:path";
import { defined } from "../../lib/defined.ts";
import { plural } from "../../lib/text.ts";
import { TroupeError, withHint } from "../../protocol/errors.ts";
import { type AutopilotVerdict, verdictText } from "../../session/modes/autopilot.ts";
import type { Outcome, Session } from "../../session/session.ts";
import type { ExitCode } from "../exit-codes.ts";
import { costText, turnsText } from "./agent-usage.ts";

/** Returns the last line of JSON output: the outcome of the prompt, and its usage. */
export function resultLine(what: {
  session: Session;
  outcome: Outcome;
  verdict?: AutopilotVerdict | undefined;
  /** Agents that were still working when the wait ended. */
  left: readonly string[];
  exitCode: ExitCode;
}): object {
  const { session, outcome, verdict, left, exitCode } = what;
  const { agents } = session.record.totals;
  const { calls, usage, costUsd, durationMs } = session.record.budget.run;
  return {
    type: "result",
    sessionId: session.id,
    exitCode,
    outcome: outcome.kind,
    ...(outcome.kind === "done" && { answer: outcome.answer }),
    ...("error" in outcome && { error: outcome.error.message }),
    ...(outcome.kind === "limit" && { error: outcome.reached.message }),
    ...defined({ verdict }),
    usage: { turns: calls, ...usage, durationMs },
    costUsd,
    ...(agents.length > 0 && { agents }),
    ...(left.length > 0 && { unfinishedAgents: left }),
  };
}

/** Returns the last lines for stderr: the failure, the usage, and how to continue. */
export function finalLines(what: {
  session: Session;
  outcome: Outcome;
  verdict?: AutopilotVerdict | undefined;
  /** Agents whose worktree holds unmerged work. */
  unmerged: readonly string[];
  silent: boolean;
}): string[] {
  const { session, outcome, verdict, unmerged, silent } = what;
  const trouble = [...troubleOf(outcome), ...verdictLines(session, verdict, { silent })];
  const resume =
    outcome.kind === "done" || !session.record.isStored ? [] : [`to resume: troupe --resume ${session.id} -p "…"`];
  if (silent) return trouble;
  // A command that was answered here leaves no session to name.
  const usage = session.record.isStored || session.record.budget.run.calls > 0 ? [usageLine(session)] : [];
  const lines = [...proposals(session), ...worktrees(session, unmerged), ...changes(session), ...usage];
  return [...trouble, ...lines, ...resume];
}

/** Returns the files that this session changed, if this run did something. Known once the session is closed. */
function changes({ events, record, workspace, id }: Session): string[] {
  const own = events.slice(record.inherited);
  const end = own.findLast(({ type }) => type === "session.shutdown");
  const ran = own.some(({ type }) => type === "tool.execution_start");
  if (end?.type !== "session.shutdown" || !ran) return [];
  const { filesModified, linesAdded, linesRemoved } = end.data.codeChanges;
  if (filesModified.length === 0) return [];
  const more = filesModified.length > MAX_FILES_NAMED ? ` and ${filesModified.length - MAX_FILES_NAMED} more` : "";
  const names = filesModified.slice(0, MAX_FILES_NAMED).map((path) => nameOf(path, { id, cwd: workspace.cwd }));
  const count = `${plural(filesModified.length, "file")} +${linesAdded} −${linesRemoved}`;
  return [`${count} (${names.join(", ")}${more}) · troupe diff · troupe undo`];
}

const MAX_FILES_NAMED = 4;

/** A file of an agent's worktree is named with its agent. */
function nameOf(path: string, { id, cwd }: { id: string; cwd: string }): string {
  const [agent, ...rest] = path.split(join("session-state", id, "worktrees", sep))[1]?.split(sep) ?? [];
  return agent === undefined ? relative(cwd, path) || path : `${agent}: ${rest.join(sep)}`;
}

/** Returns a hint about work that is not in the working tree yet. */
function worktrees({ id }: Session, unmerged: readonly string[]): string[] {
  const [first, ...others] = unmerged;
  if (first === undefined) return [];
  const who = others.length === 0 ? first : `${first} and ${plural(others.length, "other agent")}`;
  const commands = ["diff", "merge", "discard"].map(
    (verb) => `troupe tasks ${verb} ${first} --session ${id.slice(0, 8)}`,
  );
  return [`the work of ${who} is in a worktree and not merged: ${commands.join(" · ")}`];
}

/** Returns a hint about proposed facts that the user has not seen. */
function proposals({ record }: Session): string[] {
  const { proposals: count } = record.totals;
  return count === 0 ? [] : [`${plural(count, "fact")} proposed to be remembered: troupe memory list`];
}

/** Bad news is printed even with `silent`. */
function verdictLines(
  session: Session,
  verdict: AutopilotVerdict | undefined,
  { silent }: { silent: boolean },
): string[] {
  if (verdict === undefined || verdict.kind === "aborted" || (verdict.kind === "complete" && silent)) return [];
  if (verdict.kind === "left" || session.mainAgent.modes.current === "autopilot")
    return [`autopilot: ${verdictText(verdict)}`];
  return [verdict.kind === "complete" ? "the check passed" : verdictText(verdict)];
}

function troubleOf(outcome: Outcome): string[] {
  switch (outcome.kind) {
    case "done":
      return [];
    case "aborted":
      return ["interrupted; everything so far is saved"];
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

/** Returns the stack of the first error. */
function defectText(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error;
  return `this is a defect in troupe, please report it:\n${cause.stack ?? cause.message}`;
}

function usageLine(session: Session): string {
  const { calls, usage, costUsd } = session.record.budget.run;
  const tokens = usage.inputTokens + usage.outputTokens;
  const cost = costUsd === null ? "price unknown" : costUsd === 0 ? "no cost" : `$${costUsd.toFixed(4)}`;
  const { agents } = session.record.totals;
  const who = agents.length === 0 ? "" : ` (${turnsText(agents)})`;
  const costs = costText(agents);
  const spent = `${tokens.toLocaleString("en-US")} tokens, ${cost}${costs === "" ? "" : ` (${costs})`}`;
  const model = answeringModel(session);
  const by = model === undefined ? "" : `, model ${model}`;
  return `${plural(calls, "turn")}${who}, ${spent}${by}, session ${session.id}`;
}

/** Returns the model that the main agent called last in this run. */
function answeringModel({ events, record }: Session): string | undefined {
  const last = events
    .slice(record.inherited)
    .findLast(({ type, agentId }) => type === "troupe.usage" && agentId === undefined);
  if (last?.type !== "troupe.usage") return undefined;
  const { provider, model } = last.data;
  return provider === model ? model : `${provider}/${model}`;
}
