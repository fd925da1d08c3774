/** Lets a subagent answer its messages: the same loop in the same log, under its own id. */
import { defined } from "../../lib/defined.ts";
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { type LoopOutcome, runLoop } from "../../loop/loop.ts";
import type { LimitReached } from "../../loop/run.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { AnswerEnd } from "../../tasks/ports.ts";
import type { TaskMessage, TaskRecord } from "../../tasks/task-record.ts";
import type { Expected } from "../budget/reservations.ts";
import type { Conversation } from "../conversation.ts";
import { History } from "../history.ts";
import type { Broker } from "../requests/broker.ts";
import type { RunSettings } from "../run-settings.ts";
import type { BoundHooks } from "../turn/hooked-calls.ts";
import { startRun } from "../turn/start-run.ts";
import type { RemoteAnswerPorts } from "./remote-agent.ts";

/** Everything specific to one agent. It shares the rest with the session. */
export interface AgentSetup
  extends Pick<RunSettings, "model" | "promptAndTools" | "cwd" | "roots" | "policy" | "ports"> {
  readonly reasoningEffort?: NonNullable<RunSettings["reasoningEffort"]>;
  /** Text before its first message: its skills and facts about its environment. */
  readonly prelude?: string;
  /** May replace the result of an answer. */
  replaceEnd?(end: AnswerEnd): Promise<AnswerEnd>;
  /** Returns instructions that apply to this file and are new to the agent. Absent for agents without instructions. */
  discover?(path: string): Promise<readonly { readonly path: string; readonly text: string }[]>;
  /** Releases its resources, such as processes and servers. */
  release(): Promise<void>;
}

/** Checks an agent's answer against its schema. */
export interface OutputCheck {
  /** Sent with its first message. */
  readonly instruction: string;
  /** Returns the correction request for an invalid answer; undefined if it is valid or no attempts are left. */
  next(response: string): Promise<string | undefined>;
  /** Returns the final answer, or the reason why it is invalid. */
  judge(
    response: string,
  ): Promise<{ readonly ok: true; readonly response: string } | { readonly ok: false; readonly problem: string }>;
}

/** A task or a sidekick. */
export type AgentTask = Pick<TaskRecord, "id" | "parentId" | "spec" | "tools" | "isBriefed" | "activeMs">;

/** An agent that runs as a session of its own, on any worker. */
export interface RemoteAgent extends Partial<Pick<AgentSetup, "prelude" | "discover">> {
  run(ports: RemoteAnswerPorts): Promise<LoopOutcome>;
}

export interface AgentAnswer {
  readonly task: AgentTask;
  /** The agent's own description, for hooks. */
  readonly agentDescription: string;
  readonly messages: readonly TaskMessage[];
  readonly agentSetup: AgentSetup | RemoteAgent;
  readonly settings: RunSettings;
  readonly conversation: Conversation;
  readonly emit: Emit;
  readonly broker: Broker;
  readonly hooks: BoundHooks | undefined;
  readonly signal: AbortSignal;
  readonly transcriptPath: string;
  readonly check?: OutputCheck | undefined;
  /** `low`: all other agents' model requests come first. */
  readonly priority?: "low";
  /** Returns messages that arrived while it works. */
  takeMessages(): readonly TaskMessage[];
  /** Emits the due notices of its own agents. */
  takeNotices(emit: Emit): Promise<void>;
  limitReached(expected: Expected): LimitReached | undefined;
  usageCounted(): void;
  activity(text: string): void;
}

/** The number of times `subagentStop` hooks may block an agent from stopping. */
const MAX_BLOCKS = 8;
/** Time limit for hooks at the end of a stopped agent. Shorter than the time that a stop waits for agents. */
const STOPPED_HOOK_MS = 1_500;

export async function runAgentAnswer(answer: AgentAnswer): Promise<AnswerEnd> {
  const { task, signal, conversation } = answer;
  const deadline = deadlineOf(task.spec.limits?.durationMs, task.activeMs);
  const stop = deadline ? AbortSignal.any([signal, deadline]) : signal;
  const { check } = answer;
  signal.throwIfAborted();
  const stopCheckOfRun = stopCheck(answer, check);
  // The loop rejects only for defects. Hooks are notified of those as well.
  const outcome = await runAgentLoop(answer, { stop, gate: stopCheckOfRun }).catch(async (error: unknown) => {
    await stopCheckOfRun.ended(signal.aborted ? "cancelled" : "error");
    throw error;
  });
  const timedOut = outcome.kind === "aborted" && deadline?.aborted === true && !signal.aborted;
  await stopCheckOfRun.ended(timedOut ? "limit" : stopReasons[outcome.kind]);
  return endOf(outcome, { response: stopCheckOfRun.rewritten() ?? lastAnswer(conversation), check, timedOut });
}

const stopReasons = { done: "end_turn", error: "error", limit: "limit", aborted: "cancelled" } as const;

async function runAgentLoop(answer: AgentAnswer, checks: { stop: AbortSignal; gate: StopCheck }): Promise<LoopOutcome> {
  const { task, agentSetup, settings, emit, conversation, broker, hooks } = answer;
  const { spec } = task;
  await sendFirstMessages(answer, answer.check);
  const deliver = async (say: Emit): Promise<void> => {
    for (const message of answer.takeMessages()) await say("user.message", userMessageOf(message));
  };
  if ("run" in agentSetup) {
    const { beforeStopping } = checks.gate;
    return agentSetup.run({ signal: checks.stop, deliver: () => deliver(emit), beforeStopping });
  }
  // The session's file-access handler serves only the main agent; an agent discovers its own instructions, if it has
  // any.
  const { onFileAccess: _, ...shared } = settings;
  const found = new Discoveries(agentSetup);
  const run = startRun({
    ...shared,
    ...agentSetup,
    emit,
    history: new History(conversation, settings.log),
    pendingMessages: {
      deliver: async (say) => {
        await answer.takeNotices(say);
        for (const notice of found.take()) await say("system.notification", notice);
        await deliver(say);
      },
    },
    broker,
    signal: checks.stop,
    hooks,
    source: "subagent",
    cacheKey: `${settings.log.sessionId}/${task.id}`,
    agent: { id: task.id, name: spec.agentName, parentId: task.parentId },
    ...defined({ priority: answer.priority }),
    limitReached: (expected) => answer.limitReached(expected),
    usageCounted: () => answer.usageCounted(),
    beforeStopping: checks.gate.beforeStopping,
    ...(agentSetup.discover && { onFileAccess: (path, toolName) => found.discover(path, toolName) }),
  });
  return runLoop(run);
}

/** Instructions that an agent discovered, held until its next model call. */
class Discoveries {
  readonly #agentSetup: Pick<AgentSetup, "discover">;
  #waiting: EventData<"system.notification">[] = [];

  constructor(agentSetup: Pick<AgentSetup, "discover">) {
    this.#agentSetup = agentSetup;
  }

  async discover(triggerFile: string, triggerTool: string): Promise<void> {
    for (const { path: sourcePath, text: content } of (await this.#agentSetup.discover?.(triggerFile)) ?? []) {
      const kind = { type: "instruction_discovered", sourcePath, triggerFile, triggerTool } as const;
      this.#waiting.push({ content, kind });
    }
  }

  take(): readonly EventData<"system.notification">[] {
    return this.#waiting.splice(0);
  }
}

/** Emits the messages to answer. The first one also has the hook's context, the prelude and the output schema. */
async function sendFirstMessages(answer: AgentAnswer, check: OutputCheck | undefined): Promise<void> {
  const { task, messages, emit, agentSetup, hooks, signal } = answer;
  const parts: string[] = [];
  if (!task.isBriefed) {
    if (hooks?.has("subagentStart")) {
      const about = { ...hookSubject(answer), agentDescription: answer.agentDescription };
      const hookOutput = await hooks.fire("subagentStart", about, signal);
      if (hookOutput.additionalContext) parts.push(hookOutput.additionalContext);
    }
    if (agentSetup.prelude) parts.push(agentSetup.prelude);
  }
  for (const [index, message] of messages.entries()) {
    const before = index === 0 ? parts : [];
    const after = index === 0 && !task.isBriefed && check ? [check.instruction] : [];
    await emit("user.message", userMessageOf(message, [...before, textOf(message), ...after].join("\n\n")));
  }
}

/** Wraps a message of another agent as quoted data with its sender. */
function textOf({ content, from }: TaskMessage): string {
  return from === undefined ? content : wrapInTag("agent_message", { from }, quoted(content));
}

function userMessageOf(message: TaskMessage, shown = textOf(message)) {
  const { content, id: interactionId } = message;
  return { content, interactionId, source: "agent", ...(shown !== content && { transformedContent: shown }) };
}

function hookSubject({ task, transcriptPath }: AgentAnswer) {
  const { id, parentId, spec } = task;
  return {
    transcriptPath,
    agentName: spec.agentName,
    agentDisplayName: spec.agentDisplayName,
    agentId: id,
    agentType: spec.agentName,
    ...defined({ parentAgentId: parentId }),
  };
}

interface StopCheck {
  /** Called before the agent submits an answer. */
  beforeStopping(): Promise<"stop" | "continue">;
  /** The answer as changed by a hook. */
  rewritten(): string | undefined;
  /** Runs the `subagentStop` hooks at the end of the run, unless they have already accepted this answer. */
  ended(stopReason: string): Promise<void>;
}

/** Lets hooks and the output schema reject an agent's answer before it stops. Both can do so only a few times. */
function stopCheck(answer: AgentAnswer, check: OutputCheck | undefined): StopCheck {
  const { hooks, emit, signal } = answer;
  let blocks = 0;
  let rewritten: string | undefined;
  let mayStop = false;
  const fire = async (stopReason: string, until: AbortSignal) => {
    const response = lastAnswer(answer.conversation);
    const input = { ...hookSubject(answer), response, stopReason, stop_hook_active: blocks > 0 };
    return hooks?.fire("subagentStop", input, until);
  };
  const beforeStopping = async (): Promise<"stop" | "continue"> => {
    const repair = await check?.next(lastAnswer(answer.conversation));
    if (repair !== undefined) {
      await emit("user.message", { content: repair, source: "output-schema" });
      return "continue";
    }
    if (!hooks?.has("subagentStop") || signal.aborted) return "stop";
    const hookOutput = await fire("end_turn", signal);
    if (hookOutput?.modifiedResponse !== undefined) rewritten = hookOutput.modifiedResponse;
    mayStop = hookOutput?.decision !== "block" || ++blocks > MAX_BLOCKS;
    if (mayStop) return "stop";
    await emit("user.message", {
      content: hookOutput?.reason ?? "Go on: the work is not finished.",
      source: "hook-subagentStop",
    });
    return "continue";
  };
  const ended = async (stopReason: string): Promise<void> => {
    if (mayStop || !hooks?.has("subagentStop")) return;
    // A stopping agent has little time left.
    const until = signal.aborted ? AbortSignal.timeout(STOPPED_HOOK_MS) : signal;
    await fire(stopReason, until).catch(() => undefined); // it can no longer decide anything, and is in the log
  };
  return { beforeStopping, rewritten: () => rewritten, ended };
}

async function endOf(
  outcome: LoopOutcome,
  result: { response: string; check: OutputCheck | undefined; timedOut: boolean },
): Promise<AnswerEnd> {
  const { response, check, timedOut } = result;
  if (timedOut) return { kind: "limit", limit: "time", message: TIME_IS_UP, response };
  switch (outcome.kind) {
    case "aborted":
      return { kind: "aborted" };
    case "limit":
      return { kind: "limit", limit: limitOf(outcome.reached), message: outcome.reached.message, response };
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

const limitOf = ({ limit, isPriceUnknown }: LimitReached) => (isPriceUnknown ? "price" : limit);

function lastAnswer({ entries }: Conversation): string {
  for (let index = entries.length - 1; index >= 0; index--) {
    const message = entries[index]?.message;
    if (message?.role === "assistant" && message.content !== "") return message.content;
    if (message?.role === "user") break;
  }
  return "";
}

export const TIME_IS_UP = "its time is up";
/** The maximum delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** Returns the time limit for this answer. The limit covers all answers together; idle time is not counted. */
function deadlineOf(durationMs: number | undefined, activeMs: number): AbortSignal | undefined {
  if (durationMs === undefined) return undefined;
  return AbortSignal.timeout(Math.max(0, Math.min(durationMs - activeMs, LONGEST_MS)));
}
