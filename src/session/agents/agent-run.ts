/** One turn of an agent that works for another: the same loop, in the same log, under its own id. */
import { quoted, wrapped } from "../../lib/quoting.ts";
import { type Outcome, runLoop } from "../../loop/loop.ts";
import type { LimitReached } from "../../loop/run.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { TurnEnd } from "../../tasks/ports.ts";
import type { TaskMessage, TaskRecord } from "../../tasks/task-record.ts";
import type { Expected } from "../budget/reservations.ts";
import type { Conversation } from "../conversation.ts";
import { History } from "../history.ts";
import type { Broker } from "../requests/broker.ts";
import type { RunSettings } from "../run-settings.ts";
import type { SessionHooks } from "../turn/hooked-calls.ts";
import { startRun } from "../turn/start-run.ts";

/** Everything one agent is given; the rest it shares with the session. */
export interface AgentSetup extends Pick<RunSettings, "model" | "offer" | "cwd" | "roots" | "policy" | "ports"> {
  readonly reasoningEffort?: NonNullable<RunSettings["reasoningEffort"]>;
  /** Said before its first message: skills it brings, facts about the place. */
  readonly prelude?: string;
  /** Has the last word on how a turn ended. */
  settle?(end: TurnEnd): Promise<TurnEnd>;
  /** Instructions that are new to it now that it touches this file; left out for one that is told none. */
  discover?(path: string): Promise<readonly { readonly path: string; readonly text: string }[]>;
  /** Lets go of what it holds: processes, servers. */
  release(): Promise<void>;
}

/** What an agent's answer must fit. */
export interface OutputCheck {
  /** Said with its first message. */
  readonly instruction: string;
  /** What to tell it about an answer that does not fit; undefined when it does, or was told often enough. */
  next(response: string): Promise<string | undefined>;
  /** The answer as it is handed on, or why it cannot be. */
  judge(
    response: string,
  ): Promise<{ readonly ok: true; readonly response: string } | { readonly ok: false; readonly problem: string }>;
}

/** Who works: a task, or whoever is run like one. */
export type Actor = Pick<TaskRecord, "id" | "parentId" | "spec" | "tools" | "isBriefed" | "activeMs">;

export interface AgentTurn {
  readonly task: Actor;
  /** The agent's own description, for hooks. */
  readonly agentDescription: string;
  readonly messages: readonly TaskMessage[];
  readonly outfit: AgentSetup;
  readonly settings: RunSettings;
  readonly conversation: Conversation;
  readonly emit: Emit;
  readonly broker: Broker;
  readonly hooks: SessionHooks | undefined;
  readonly signal: AbortSignal;
  readonly transcriptPath: string;
  readonly check?: OutputCheck | undefined;
  /** `low`: at the model everybody else comes first. */
  readonly priority?: "low";
  /** What was written to it while it works. */
  takeMessages(): readonly TaskMessage[];
  /** What it must hear of its own agents. */
  takeNotices(emit: Emit): Promise<void>;
  limitReached(expected: Expected): LimitReached | undefined;
  settled(): void;
  activity(text: string): void;
}

/** A hook that will not let an agent go is heard this often, then no more. */
const MAX_BLOCKS = 8;
/** The time hooks have at the end of an agent that is stopped. Less than what a stop waits for its agents. */
const STOPPED_HOOK_MS = 1_500;

export async function runAgentTurn(turn: AgentTurn): Promise<TurnEnd> {
  const { task, signal, conversation } = turn;
  const deadline = deadlineOf(task.spec.limits?.durationMs, task.activeMs);
  const stop = deadline ? AbortSignal.any([signal, deadline]) : signal;
  const { check } = turn;
  signal.throwIfAborted();
  const gate = stopping(turn, check);
  // The loop rejects for defects only. Hooks hear of those ends too.
  const outcome = await work(turn, { stop, gate }).catch(async (error: unknown) => {
    await gate.ended(signal.aborted ? "cancelled" : "error");
    throw error;
  });
  const timedOut = outcome.kind === "aborted" && deadline?.aborted === true && !signal.aborted;
  await gate.ended(timedOut ? "limit" : stopReasons[outcome.kind]);
  return endOf(outcome, { response: gate.rewritten() ?? lastWords(conversation), check, timedOut });
}

const stopReasons = { done: "end_turn", error: "error", limit: "limit", aborted: "cancelled" } as const;

async function work(turn: AgentTurn, how: { stop: AbortSignal; gate: Gate }): Promise<Outcome> {
  const { task, outfit, settings, emit, conversation, broker, hooks } = turn;
  const { spec } = task;
  await brief(turn, turn.check);
  // What the main agent finds on its way is told to it alone; who was sent out finds for itself, or nothing.
  const { onFileAccess: _, ...shared } = settings;
  const found = new Discoveries(outfit);
  const run = startRun({
    ...shared,
    ...outfit,
    emit,
    history: new History(conversation, settings.log),
    inbox: {
      deliver: async (say) => {
        await turn.takeNotices(say);
        for (const notice of found.take()) await say("system.notification", notice);
        for (const message of turn.takeMessages()) await say("user.message", told(message));
      },
    },
    broker,
    signal: how.stop,
    hooks,
    source: "subagent",
    cacheKey: `${settings.log.sessionId}/${task.id}`,
    agent: { id: task.id, name: spec.agentName, parentId: task.parentId },
    ...(turn.priority && { priority: turn.priority }),
    limitReached: (expected) => turn.limitReached(expected),
    settled: () => turn.settled(),
    beforeStopping: how.gate.beforeStopping,
    ...(outfit.discover && { onFileAccess: (path, toolName) => found.look(path, toolName) }),
  });
  return runLoop(run);
}

/** Instructions that an agent came upon, until its next model call. */
class Discoveries {
  readonly #outfit: Pick<AgentSetup, "discover">;
  #waiting: EventData<"system.notification">[] = [];

  constructor(outfit: Pick<AgentSetup, "discover">) {
    this.#outfit = outfit;
  }

  async look(triggerFile: string, triggerTool: string): Promise<void> {
    for (const { path: sourcePath, text: content } of (await this.#outfit.discover?.(triggerFile)) ?? []) {
      const kind = { type: "instruction_discovered", sourcePath, triggerFile, triggerTool } as const;
      this.#waiting.push({ content, kind });
    }
  }

  take(): readonly EventData<"system.notification">[] {
    return this.#waiting.splice(0);
  }
}

/** The first turn begins with what the agent must know; later ones with what it was written. */
async function brief(turn: AgentTurn, check: OutputCheck | undefined): Promise<void> {
  const { task, messages, emit, outfit, hooks, signal } = turn;
  const parts: string[] = [];
  if (!task.isBriefed) {
    if (hooks?.has("subagentStart")) {
      const about = { ...whoIs(turn), agentDescription: turn.agentDescription };
      const said = await hooks.fire("subagentStart", about, signal);
      if (said.additionalContext) parts.push(said.additionalContext);
    }
    if (outfit.prelude) parts.push(outfit.prelude);
  }
  for (const [index, message] of messages.entries()) {
    const before = index === 0 ? parts : [];
    const after = index === 0 && !task.isBriefed && check ? [check.instruction] : [];
    await emit("user.message", told(message, [...before, wordsOf(message), ...after].join("\n\n")));
  }
}

/** What another agent wrote is data, and says from whom it is. */
function wordsOf({ content, from }: TaskMessage): string {
  return from === undefined ? content : wrapped("agent_message", { from }, quoted(content));
}

function told(message: TaskMessage, shown = wordsOf(message)) {
  const { content, id: interactionId } = message;
  return { content, interactionId, source: "agent", ...(shown !== content && { transformedContent: shown }) };
}

function whoIs({ task, transcriptPath }: AgentTurn) {
  const { id, parentId, spec } = task;
  return {
    transcriptPath,
    agentName: spec.agentName,
    agentDisplayName: spec.agentDisplayName,
    agentId: id,
    agentType: spec.agentName,
    ...(parentId !== undefined && { parentAgentId: parentId }),
  };
}

interface Gate {
  /** Asked before the agent hands in an answer. */
  beforeStopping(): Promise<"stop" | "continue">;
  /** The answer as a hook changed it. */
  rewritten(): string | undefined;
  /** The run is over. Tells the `subagentStop` hooks, unless they have let this answer pass. */
  ended(stopReason: string): Promise<void>;
}

/** Before an agent hands in its answer, hooks may want more, and a schema may not be met. Both are heard a few times. */
function stopping(turn: AgentTurn, check: OutputCheck | undefined): Gate {
  const { hooks, emit, signal } = turn;
  let blocks = 0;
  let rewritten: string | undefined;
  let isLetGo = false;
  const fire = async (stopReason: string, until: AbortSignal) => {
    const response = lastWords(turn.conversation);
    const input = { ...whoIs(turn), response, stopReason, stop_hook_active: blocks > 0 };
    return hooks?.fire("subagentStop", input, until);
  };
  const beforeStopping = async (): Promise<"stop" | "continue"> => {
    const repair = await check?.next(lastWords(turn.conversation));
    if (repair !== undefined) {
      await emit("user.message", { content: repair, source: "output-schema" });
      return "continue";
    }
    if (!hooks?.has("subagentStop") || signal.aborted) return "stop";
    const said = await fire("end_turn", signal);
    if (said?.modifiedResponse !== undefined) rewritten = said.modifiedResponse;
    isLetGo = said?.decision !== "block" || ++blocks > MAX_BLOCKS;
    if (isLetGo) return "stop";
    await emit("user.message", {
      content: said?.reason ?? "Go on: the work is not finished.",
      source: "hook-subagentStop",
    });
    return "continue";
  };
  const ended = async (stopReason: string): Promise<void> => {
    if (isLetGo || !hooks?.has("subagentStop")) return;
    // An agent that is being stopped has a moment only.
    const until = signal.aborted ? AbortSignal.timeout(STOPPED_HOOK_MS) : signal;
    await fire(stopReason, until).catch(() => undefined); // it decides nothing any more, and stands in the log
  };
  return { beforeStopping, rewritten: () => rewritten, ended };
}

async function endOf(
  outcome: Outcome,
  what: { response: string; check: OutputCheck | undefined; timedOut: boolean },
): Promise<TurnEnd> {
  const { response, check, timedOut } = what;
  if (timedOut) return { kind: "limit", message: TIME_IS_UP, response };
  switch (outcome.kind) {
    case "aborted":
      return { kind: "aborted" };
    case "limit":
      return { kind: "limit", message: outcome.reached.message, response };
    case "error":
      return { kind: "failed", error: outcome.error.message, response };
    case "done": {
      if (response.trim() === "") return { kind: "empty" };
      const judged = (await check?.judge(response)) ?? { ok: true, response };
      return judged.ok
        ? { kind: "answered", response: judged.response }
        : { kind: "invalid_output", error: judged.problem, response };
    }
  }
}

function lastWords({ entries }: Conversation): string {
  for (let index = entries.length - 1; index >= 0; index--) {
    const message = entries[index]?.message;
    if (message?.role === "assistant" && message.content !== "") return message.content;
    if (message?.role === "user") break;
  }
  return "";
}

export const TIME_IS_UP = "its time is up";
/** Timers count no further. */
const LONGEST_MS = 2 ** 31 - 1;

/** Time is for all turns together; what it rests costs none. */
function deadlineOf(durationMs: number | undefined, activeMs: number): AbortSignal | undefined {
  if (durationMs === undefined) return undefined;
  return AbortSignal.timeout(Math.max(0, Math.min(durationMs - activeMs, LONGEST_MS)));
}
