import { plural } from "../../lib/text.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { labelsFor } from "../../protocol/labels.ts";
import type { Session } from "../../session/session.ts";
import { type Arguments, usage } from "../args.ts";
import { type ProgressOutput, progress } from "./progress.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_WAIT_SECONDS = 600;
const MAX_WAIT_SECONDS = 7 * 24 * 60 * 60;

/** How long prompt mode waits for background agents after the answer. 0 = not at all. */
export function agentWaitMs(environment: Environment): number {
  const name = environment.TROUPE_TASK_WAIT_TIMEOUT_SECONDS
    ? "TROUPE_TASK_WAIT_TIMEOUT_SECONDS"
    : "COPILOT_TASK_WAIT_TIMEOUT_SECONDS";
  const given = environment[name];
  if (given === undefined || given.trim() === "") return DEFAULT_WAIT_SECONDS * 1000;
  const seconds = Number(given);
  if (!Number.isFinite(seconds) || seconds < 0) throw usage(`${name} needs a number of seconds, not "${given}".`);
  return Math.min(seconds, MAX_WAIT_SECONDS) * 1000;
}

/** Creates the progress display that the flags and the terminal call for. */
export function progressOf(given: Arguments, how: { waitMs: number; stdoutIsBusy?: boolean }): ProgressOutput {
  const { stderr, stdout, env } = process;
  // JSON lines on the same terminal would be written into the drawing.
  const isShared = how.stdoutIsBusy === true && stdout.isTTY === true;
  return progress({
    stderr,
    live: stderr.isTTY === true && env.TERM !== "dumb" && !isShared,
    colour: stderr.isTTY === true && !env.NO_COLOR,
    labels: labelsFor(env),
    silent: given.has("silent"),
    level: given.choice("log-level", ["none", "error", "warning", "info", "debug"]) ?? "warning",
    waitMs: how.waitMs,
    now: () => performance.now(),
  });
}

/** Shows events from now on. Earlier events of a resumed session were shown before. */
export function watch(
  session: Session,
  bar: ProgressOutput,
  each: (event: SessionEvent) => void = () => undefined,
): void {
  const past = new Set(session.events.slice(0, session.record.inherited));
  session.record.follow((event) => {
    if (past.has(event)) return bar.recall(event);
    each(event);
    bar.show(event);
  });
}

/** Returns the agents that are working or queued. */
export function busyAgents(session: Session): readonly string[] {
  return (session.agents.tasks?.list({ includeEnded: false }) ?? []).flatMap(({ id, status }) =>
    status === "running" || status === "queued" ? [id] : [],
  );
}

/** Returns why the wait for agents ended. */
export function whyLeft(end: { readonly isInterrupted: boolean; readonly waitMs: number }): string {
  if (end.isInterrupted) return "interrupted";
  return `${end.waitMs === 0 ? "not waited for" : `not done after ${end.waitMs / 1000} s of waiting`}, and cut off`;
}

/**
 * Returns lines about agents that were still working when the wait ended. Call it for a closed session, which knows
 * which of them can be resumed.
 */
export function leftLines(
  left: readonly string[],
  what: { session: Pick<Session, "id"> & { agents: Pick<Session["agents"], "tasks"> }; why: string },
): string[] {
  const { session, why } = what;
  if (left.length === 0) return [];
  const resumable = left.find((id) => session.agents.tasks?.view(id)?.status === "idle");
  const more = left.length > MAX_NAMED ? ` and ${left.length - MAX_NAMED} more` : "";
  return [
    `${plural(left.length, "agent")} ${why}: ${left.slice(0, MAX_NAMED).join(", ")}${more}`,
    ...(resumable === undefined ? [] : [`to resume: troupe tasks resume ${resumable} --session ${session.id}`]),
  ];
}

const MAX_NAMED = 8;
