/** Text about other agents for the model. Their output is data: quoted, bounded, and never mistaken for ours. */
import * as z from "zod";
import { quoted } from "../../lib/quoting.ts";
import { clip, nearest, sanitiseLine } from "../../lib/text.ts";
import type { ToolContext } from "../tool.ts";
import { ToolError, type ToolErrorCode } from "../tool-error.ts";
import type { TaskAnswer, TaskReason, TaskReport, Tasks, TaskView } from "./task-port.ts";

/** Maximum wait for an agent. Its own limits normally end it earlier. */
export const AGENT_TIMEOUT_MS = 24 * 60 * 60 * 1000;
/** Limit for a partial answer in an error, which the session does not bound. */
const MAX_PARTIAL_CHARACTERS = 8000;
const MAX_ERROR_CHARACTERS = 4000;
const MAX_LINE_CHARACTERS = 200;
const MAX_NAMES_OFFERED = 20;

/** A string with a length limit that is not spelled out in the JSON schema; the error states it. */
export function textUpTo(maxCharacters: number): z.ZodString {
  return z.string().refine((text) => text.trim() !== "" && text.length <= maxCharacters, {
    error: `must have 1 to ${maxCharacters} characters`,
  });
}

export const agentId = () => textUpTo(200);

export function tasksOf({ tasks }: ToolContext): Tasks {
  if (tasks === undefined) throw new ToolError("This session cannot start agents: it was opened without them.");
  return tasks;
}

/** Returns text of another agent as one quoted line. */
export function line(text: string, maxCharacters = MAX_LINE_CHARACTERS): string {
  return clip(quoted(sanitiseLine(text)).trim(), maxCharacters);
}

/** Normalises names and ids for comparison: without case, spaces, underscores and hyphens. */
export function normaliseName(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, "");
}

/**
 * Returns the id of the task that `wanted` most likely names. Returns `wanted` when none is similar, so that the
 * registry can still resolve it.
 */
export function idMeant(wanted: string, tasks: Tasks): string {
  const ids = idsOf(tasks);
  if (ids.includes(wanted)) return wanted;
  const alike = ids.filter((id) => normaliseName(id) === normaliseName(wanted));
  return alike.length === 1 && alike[0] !== undefined ? alike[0] : wanted;
}

/** Adds the list of agents to an error when the id may be wrong. */
export async function namingAgents<T>(wanted: string, tasks: Tasks, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const ids = idsOf(tasks);
    if (!(error instanceof ToolError) || ids.includes(wanted)) throw error;
    throw new ToolError(`${error.message} ${suggestIds(wanted, ids)}`, { code: error.code, cause: error });
  });
}

function idsOf(tasks: Tasks): string[] {
  return tasks.list({ scope: "all", includeEnded: true }).map(({ id }) => id);
}

function suggestIds(wanted: string, ids: readonly string[]): string {
  const close = nearest(wanted, ids) ?? ids.find((id) => normaliseName(id).includes(normaliseName(wanted)));
  if (close !== undefined) return `Did you mean ${JSON.stringify(close)}?`;
  return ids.length === 0 ? "No agent has been started yet." : `Agents: ${namesOffered(ids)}.`;
}

/** Returns a bounded list of names for an error. */
export function namesOffered(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES_OFFERED).map((name) => line(name, 80));
  const hidden = names.length - shown.length;
  return hidden > 0 ? `${shown.join(", ")} and ${hidden} more` : shown.join(", ");
}

/**
 * Returns the answer for a waiting caller. Throws a `ToolError` with the partial answer when the task did not finish.
 */
export function answerOf(report: TaskReport): string {
  const { task, error } = report;
  const answer = lastResponse(report);
  const reason = reasonOf(task);
  if (reason === "finished" && answer.trim() !== "") return quoted(answer);
  const { sentence, code } = ENDS[reason === "finished" ? "empty" : reason];
  const why = error === undefined ? "" : ` ${clip(quoted(error), MAX_ERROR_CHARACTERS)}`;
  throw new ToolError(`Agent "${line(task.id)}" ${sentence}${why}${remains(report, MAX_PARTIAL_CHARACTERS)}`, { code });
}

/** Tells an agent where the changes of another one are. */
export const changesText = (changes: string): string =>
  `Its changes are not in your files. They are on ${changes.startsWith("refs/") ? `${line(changes)} of origin` : `the branch ${line(changes)}`}: merge what should be kept.`;

/** All endings without an answer, worded so that they cannot be mistaken for success. */
const ENDS: Readonly<Record<Exclude<TaskReason, "finished">, { sentence: string; code: ToolErrorCode }>> = {
  empty: { sentence: "ended without an answer.", code: "failure" },
  limit: { sentence: "was stopped by a limit before it was done.", code: "failure" },
  error: { sentence: "failed.", code: "failure" },
  stopped: { sentence: "was stopped before it was done.", code: "interrupted" },
  interrupted: { sentence: "was interrupted before it was done.", code: "interrupted" },
  invalid_output: { sentence: "gave an answer that does not fit the schema.", code: "failure" },
};

/** Returns the reason of a task; derives it from the status when none was recorded. */
export function reasonOf({ status, reason }: TaskView): TaskReason {
  if (status === "failed") return reason === undefined || reason === "finished" ? "error" : reason;
  if (status === "cancelled") return reason === "interrupted" ? "interrupted" : "stopped";
  return reason ?? "finished";
}

export function endSentence(reason: TaskReason): string {
  return reason === "finished" ? "completed." : ENDS[reason].sentence;
}

/** Returns the partial or invalid answer of a task. Cut only when `maxCharacters` is given. */
export function remains(report: TaskReport, maxCharacters = Number.POSITIVE_INFINITY): string {
  const text = lastResponse(report);
  if (text.trim() === "") return "";
  const lead = reasonOf(report.task) === "invalid_output" ? "Its answer:" : "Its unfinished answer:";
  const cut = text.length > maxCharacters ? `\n[cut; read_agent "${line(report.task.id)}" returns all of it]` : "";
  return `\n\n${lead}\n${clip(quoted(text), maxCharacters)}${cut}`;
}

function lastResponse({ answers: turns }: TaskReport): string {
  return turns.at(-1)?.response ?? "";
}

/**
 * Returns turns with labels, for tasks with several. The model counts turns from 0, tasks count from 1. The first
 * message is omitted: it is the prompt, which the reader knows.
 */
export function labelledAnswers(answers: readonly TaskAnswer[]): string {
  return answers
    .map(({ number, message, response }) => {
      const asked = number <= 1 || message === "" ? "" : `Message: ${clip(quoted(message), MAX_ERROR_CHARACTERS)}\n\n`;
      return `[Turn ${number - 1}]\n${asked}${quoted(response)}`;
    })
    .join("\n\n");
}

export function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)}s`;
}

/** Returns "45s", "12m" or "3h", for tables. */
export function age(milliseconds: number): string {
  const total = Math.max(0, Math.round(milliseconds / 1000));
  if (total < 120) return `${total}s`;
  return total < 7200 ? `${Math.round(total / 60)}m` : `${Math.round(total / 3600)}h`;
}

export function cost(usd: number | null): string {
  return usd === null ? "unknown" : `$${usd < 0.01 && usd > 0 ? usd.toFixed(4) : usd.toFixed(2)}`;
}
