/**
 * Starts a consolidation when a session ends, in a detached process. The server calls it for every session that it
 * closes, also for editors. Programs that embed the runtime call it too.
 */
import { spawn } from "node:child_process";
import { BOARD_AGENT } from "../../agents/agent.ts";
import { UNDERSTUDY } from "../../model/catalog.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { tallyOf } from "../../session/compaction/condense.ts";
import type { Session } from "../../session/session.ts";
import { CONSOLIDATION_REQUEST, ENGAGEMENT, PARENT_SESSION } from "./consolidate.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ShutdownConsolidation {
  /** Must not be closed yet: the outcome is written to its log. */
  readonly session: Pick<Session, "id" | "events" | "record" | "mainAgent" | "workspace">;
  readonly environment: Environment;
  /** Command that starts troupe: the program and its leading arguments. */
  readonly program: readonly [string, ...string[]];
  /** The model as the user named it (default: the child resolves one as usual). */
  readonly model?: string;
  /** True if the model belongs to a client, so another process cannot use it. */
  readonly modelOfClient?: boolean;
}

export type ShutdownOutcome = "off" | "spawned" | "below_min_turns" | "detached_child" | "failed";

const MIN_USER_MESSAGES = 3;
/** Time limit for starting the process. */
const START_MS = 2000;
/** Time limit for updating the session store; the child itself only reads the log. */
const FLUSH_MS = 1000;

/** Checks in this order: board enabled, not itself a consolidation, enough user messages. Never rejects. */
export async function consolidateAtShutdown(options: ShutdownConsolidation): Promise<ShutdownOutcome> {
  const { session, environment } = options;
  const { board } = session.workspace.services ?? {};
  if (!board) return "off";
  const logOutcome = async (outcome: Exclude<ShutdownOutcome, "off">, more: { pid?: number; reason?: string } = {}) => {
    await session.record.emit("troupe.shutdown_consolidation", { outcome, ...more }).catch(() => undefined);
    return outcome;
  };
  if (environment[PARENT_SESSION] || session.record.detachedFrom !== undefined) return logOutcome("detached_child");
  if (tallyOf(sinceLast(session.events)).ofPerson < MIN_USER_MESSAGES) return logOutcome("below_min_turns");
  if (options.modelOfClient) return logOutcome("failed", { reason: "only the client can reach the model" });
  if (session.mainAgent.model.providerId === UNDERSTUDY)
    return logOutcome("failed", { reason: "the understudy does not reason" });
  try {
    // Events are written in order: once this one is on disk, so is everything the child reads.
    await session.record.emit("session.info", {
      infoType: "consolidation",
      message: "Consolidating in the background.",
    });
    await within(FLUSH_MS, board.flush());
    return await logOutcome("spawned", { pid: await start(options) });
  } catch (error) {
    return logOutcome("failed", { reason: error instanceof Error ? error.message : String(error) });
  }
}

/** Returns the events after the last consolidation, so that closing a resumed session does not repeat it. */
function sinceLast(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const isSpawn = ({ type, data }: SessionEvent): boolean =>
    type === "troupe.shutdown_consolidation" && data.outcome === "spawned";
  return events.slice(events.findLastIndex(isSpawn) + 1);
}

function childArguments({ model, session }: ShutdownConsolidation): string[] {
  return [
    ...["--agent", BOARD_AGENT, "-p", CONSOLIDATION_REQUEST, "--yolo", "--silent"],
    ...(model === undefined ? [] : ["--model", model]),
    // The board depends on trust, and the child does not know of trust given for this run.
    ...(session.workspace.services?.board?.isTrustedForRun ? ["--trust-folder"] : []),
  ];
}

/** Resolves when the process runs. It is detached: without our terminal and pipes, in its own process group. */
function start(options: ShutdownConsolidation): Promise<number> {
  const { session, environment, program } = options;
  const [command, ...before] = program;
  const child = spawn(command, [...before, ...childArguments(options)], {
    cwd: session.workspace.cwd,
    detached: true,
    stdio: "ignore",
    windowsHide: true,
    env: {
      ...environment,
      COPILOT_SUBCONSCIOUS: "on",
      [PARENT_SESSION]: session.id,
      [ENGAGEMENT]: environment[ENGAGEMENT] ?? session.id,
    },
  });
  child.unref();
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("it did not start in time")), START_MS);
    child.once("error", (error) => {
      clearTimeout(late);
      reject(error);
    });
    child.once("spawn", () => {
      clearTimeout(late);
      resolve(child.pid ?? 0);
    });
  });
}

/** Waits for the work, at most this long, and ignores its failure. */
async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([work.catch(() => undefined), late]);
  clearTimeout(timer);
}
