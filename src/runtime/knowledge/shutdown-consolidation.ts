/**
 * Starts a consolidation when a session ends: a process of its own, which nobody waits for. Called by the server for every
 * session that it closes, so also for editors, and by programs that embed the runtime.
 */
import { spawn } from "node:child_process";
import { MEMORY_AGENT } from "../../agents/agent.ts";
import { UNDERSTUDY } from "../../model/catalog.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { tallyOf } from "../../session/compaction/condense.ts";
import type { Session } from "../../session/session.ts";
import { CONSOLIDATION_REQUEST, ENGAGEMENT, PARENT_SESSION } from "./consolidate.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ShutdownConsolidation {
  /** Not closed yet: what came of it is noted in its log. */
  readonly session: Pick<Session, "id" | "events" | "say" | "settings">;
  readonly environment: Environment;
  /** How troupe is started: the program and what comes before its own arguments. */
  readonly program: readonly [string, ...string[]];
  /** As the person named it; without it the child finds one as every start does. */
  readonly model?: string;
  /** The model is one that a client brought; another process cannot use it. */
  readonly modelOfClient?: boolean;
}

export type ShutdownOutcome = "off" | "spawned" | "below_min_turns" | "detached_child" | "failed";

const MIN_USER_MESSAGES = 3;
/** A process that cannot be started says so at once. */
const START_MS = 2000;
/** The child reads the log; the store is for everyone else, and nobody waits for it any longer. */
const FLUSH_MS = 1000;

/** Gates in this order: the flag, not from such a process itself, and enough was said. Never rejects. */
export async function consolidateAtShutdown(options: ShutdownConsolidation): Promise<ShutdownOutcome> {
  const { session, environment } = options;
  const { board } = session.settings.surroundings ?? {};
  if (!board) return "off";
  const told = async (outcome: Exclude<ShutdownOutcome, "off">, more: { pid?: number; reason?: string } = {}) => {
    await session.say("troupe.shutdown_consolidation", { outcome, ...more }).catch(() => undefined);
    return outcome;
  };
  if (environment[PARENT_SESSION] || session.settings.detachedFrom !== undefined) return told("detached_child");
  if (tallyOf(sinceLast(session.events)).ofPerson < MIN_USER_MESSAGES) return told("below_min_turns");
  if (options.modelOfClient) return told("failed", { reason: "only the client can reach the model" });
  if (session.settings.model.providerId === UNDERSTUDY)
    return told("failed", { reason: "the understudy does not reason" });
  try {
    // Events are kept in their order: once this one is on disk, so is everything the child has to read.
    await session.say("session.info", { infoType: "consolidation", message: "Consolidating in the background." });
    await within(FLUSH_MS, board.flush());
    return await told("spawned", { pid: await start(options) });
  } catch (error) {
    return told("failed", { reason: error instanceof Error ? error.message : String(error) });
  }
}

/** The events after the last consolidation: a session that is resumed and closed again has nothing new to learn. */
function sinceLast(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const isSpawn = ({ type, data }: SessionEvent): boolean =>
    type === "troupe.shutdown_consolidation" && data.outcome === "spawned";
  return events.slice(events.findLastIndex(isSpawn) + 1);
}

function childArguments({ model, session }: ShutdownConsolidation): string[] {
  return [
    ...["--agent", MEMORY_AGENT, "-p", CONSOLIDATION_REQUEST, "--yolo", "--silent"],
    ...(model === undefined ? [] : ["--model", model]),
    // Whose board it is depends on trust, and the child cannot know of a word given for this run.
    ...(session.settings.surroundings?.board?.isTrustedForRun ? ["--trust-folder"] : []),
  ];
}

/** Resolves when it runs. It has neither our terminal nor our ends of pipes, and leads a group of its own. */
function start(options: ShutdownConsolidation): Promise<number> {
  const { session, environment, program } = options;
  const [command, ...before] = program;
  const child = spawn(command, [...before, ...childArguments(options)], {
    cwd: session.settings.cwd,
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

/** Whatever becomes of it, no longer than this. */
async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([work.catch(() => undefined), late]);
  clearTimeout(timer);
}
