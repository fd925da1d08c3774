/**
 * The view model: everything that a user sees of a session, folded from its events. The terminal, the progress on stderr
 * and the dashboard draw from it; no surface interprets events by itself. It runs in Node and in a browser.
 *
 * These are the types. `session-view.ts` folds, `waits.ts` and `agent-rows.ts` answer questions about the
 * result, `replay.ts` rebuilds the view at an earlier event.
 *
 * All times are milliseconds since 1970, taken from the events. All members are read-only for surfaces. Texts are as the events
 * have them, and may hold anything: a surface makes them safe (`sanitise`) before it draws them. Only `title` and `text` of an
 * `AttentionItem` are safe already.
 */
import type { EventData } from "../protocol/event.ts";
import type { Block, MarkdownPart, PlanItem, ToolCard } from "./blocks.ts";

export interface View {
  /** Number of stored events that were folded. */
  readonly sequence: number;
  /** Increases with each change. A surface that has drawn this revision has nothing to draw. */
  readonly revision: number;
  /** Id of the last stored event. */
  readonly lastEventId: string | undefined;
  /** A rewind took back events that are folded here. Fold the log again from its beginning. */
  readonly needsReload: boolean;
  readonly session: SessionFacts;
  /** The main agent. Its id is the empty string. */
  readonly main: AgentView;
  /** All other agents by their ids, in the order they were started. The oldest ended ones are dropped beyond a limit. */
  readonly agents: ReadonlyMap<string, AgentView>;
  readonly droppedAgents: number;
  /** Requests that wait for a person, oldest first. See `openAttention`. */
  readonly attention: ReadonlyMap<string, AttentionItem>;
  /** Messages that were accepted and not delivered yet, oldest first. */
  readonly queue: readonly QueuedMessage[];
  readonly plan: PlanView;
  readonly budget: BudgetView;
  readonly schedules: ReadonlyMap<number, ScheduleView>;
  /** Runs of factories (workflows), in the order they were started. */
  readonly runs: ReadonlyMap<string, FactoryRunView>;
  readonly autopilot: AutopilotView;
  readonly servers: ReadonlyMap<string, ServerView>;
}

export type SessionMode = EventData<"session.mode_changed">["newMode"];

export interface SessionFacts {
  readonly id: string;
  /** The name given by a person, else the title of the session, else the beginning of its first message. */
  readonly name: string | undefined;
  readonly startedAt: number | undefined;
  /** How often the session was opened or joined again. */
  readonly openings: number;
  readonly endedAt: number | undefined;
  readonly cwd: string | undefined;
  readonly branch: string | undefined;
  readonly repository: string | undefined;
  readonly mode: SessionMode;
  /** Of the main agent. */
  readonly model: string | undefined;
  readonly reasoningEffort: string | undefined;
  readonly permissionMode: "manual" | "assisted" | "allow-all";
  /** The main agent and all others are idle. Known from events that are not stored: false until the session reports it. */
  readonly isIdle: boolean;
  /** The main agent is idle; others may be at work. Known from events that are not stored. */
  readonly isMainIdle: boolean;
}

export type AgentStatus = EventData<"troupe.task_state">["to"];
export type AgentReason = NonNullable<EventData<"troupe.task_state">["reason"]>;

export interface AgentView {
  readonly id: string;
  readonly kind: "main" | "agent" | "sidekick" | "mcp-task";
  /** The agent that started it; undefined for the main agent and for those that it started. */
  readonly parentId: string | undefined;
  /** 0 for the main agent. */
  readonly depth: number;
  /** The agent's type, such as `explore`. */
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  /** The beginning of its prompt. */
  readonly prompt: string;
  readonly status: AgentStatus;
  readonly reason: AgentReason | undefined;
  readonly error: string | undefined;
  /** The beginning of its last answer. */
  readonly result: string | undefined;
  /** The call of its parent that started it. */
  readonly toolCallId: string | undefined;
  /** That call waits for the agent's answer. */
  readonly isAwaited: boolean;
  readonly model: string | undefined;
  /** The root of its worktree; undefined when it works in the session's folder. */
  readonly worktree: string | undefined;
  readonly factoryRunId: string | undefined;
  readonly createdAt: number;
  /** Start of the current answer, or of the wait for a free slot. */
  readonly startedAt: number;
  /** End of the last answer; undefined while it is at work. */
  readonly endedAt: number | undefined;
  /** Its present answer began before `SessionView.markPast` was called. */
  readonly isPast: boolean;
  /** Time of its last event. */
  readonly lastAt: number;
  /** Model calls that have begun. */
  readonly modelCalls: number;
  /** Messages of people or of other agents. */
  readonly messages: number;
  /** The first line of its last message that was followed by tool calls. */
  readonly intent: string;
  readonly lastTool: LastTool | undefined;
  /** The last line that it wrote or that a tool of it returned. */
  readonly lastOutput: string;
  /** Without its children. */
  readonly spent: Spent;
  /** `spent` when its present answer began. */
  readonly spentBefore: Spent;
  /** With all its children. */
  readonly subtree: Spent;
  readonly limits: EventData<"troupe.task_created">["limits"];
  readonly context: ContextUsage | undefined;
  /** Calls that run at the moment. */
  readonly tools: ReadonlyMap<string, ToolCard>;
  /** The reply that is being written. */
  readonly streaming: StreamedParts | undefined;
  /** The agent waits for its model. */
  readonly modelWait: ModelWait | undefined;
  /** Compaction of its conversation has been running since this time. */
  readonly compactingSince: number | undefined;
  /** Set for coordinated workers. */
  readonly card: WorkerCard | undefined;
  /** Finished blocks that were not drained, oldest first. */
  readonly blocks: readonly Block[];
  /** Number of blocks that were removed to bound the memory. Those that were drained do not count. */
  readonly droppedBlocks: number;
}

export interface LastTool {
  readonly toolCallId: string;
  readonly name: string;
  /** Name and main argument in one line. */
  readonly title: string;
  readonly at: number;
}

export interface Spent {
  readonly tools: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly costUsd: number;
  /** False when the price of a call is unknown; then `costUsd` is a lower bound. */
  readonly isCostKnown: boolean;
  /** Requests that were sent to models. */
  readonly requests: number;
}

export interface ContextUsage {
  readonly currentTokens: number;
  readonly tokenLimit: number;
  readonly messages: number | undefined;
  readonly systemTokens: number | undefined;
  readonly conversationTokens: number | undefined;
  readonly toolTokens: number | undefined;
}

/** A reply on its way. Parts that are finished can be drained before the message is stored. */
export interface StreamedParts {
  readonly messageId: string;
  /** Finished blocks that were not drained: reasoning first, then Markdown. */
  readonly blocks: readonly Block[];
  /** Number of Markdown parts that were drained. */
  readonly drainedParts: number;
  readonly isReasoningDrained: boolean;
  /** The part that is still being written. */
  readonly tail: MarkdownPart | undefined;
  /** Reasoning so far; shown while there is no text. */
  readonly reasoning: string;
  /** Characters received. */
  readonly characters: number;
  /** A call whose arguments are being written. */
  readonly call: { readonly toolCallId: string; readonly name: string; readonly characters: number } | undefined;
}

export interface ModelWait {
  readonly kind: "retry" | "rate_limit" | "outage" | "concurrency";
  readonly reason: string;
  /** End of the pause, where it is known. */
  readonly until: number | undefined;
  readonly attempt: number | undefined;
  readonly statusCode: number | undefined;
}

/** A coordinated worker (`subagents_run`) as a card. */
export interface WorkerCard {
  readonly title: string;
  /** Number of the coordinator's message that it works for. Cards of one message form a group. */
  readonly group: number;
  /** By step id: a step that comes again replaces the former. */
  readonly steps: ReadonlyMap<string, EventData<"troupe.subagent_step">>;
  readonly result: { readonly status: string; readonly summary: string } | undefined;
}

export type AttentionKind =
  | "permission"
  | "memory"
  | "question"
  | "plan"
  | "elicitation"
  | "sign_in"
  | "limit"
  | "model_switch";

export interface AttentionItem {
  /** The request id with which it is answered. */
  readonly id: string;
  readonly kind: AttentionKind;
  /** Undefined for the main agent. */
  readonly agentId: string | undefined;
  /** Ids of the agents from the main agent's child down to the one that asks; empty for the main agent. */
  readonly path: readonly string[];
  readonly toolCallId: string | undefined;
  /** One line. */
  readonly title: string;
  /** Everything that a person needs to decide, as Markdown; text of others is fenced and made visible. */
  readonly text: string;
  readonly at: number;
  /** Whether "for this session" can be answered. */
  readonly canAllowForSession: boolean;
  readonly choices: readonly string[];
  readonly allowFreeform: boolean;
  /** The data of the event that asked. Undefined where only the id is stored. */
  readonly request: AttentionRequest | undefined;
  /** Answered, but the stored event that closes it has not arrived. Such items are not shown. */
  readonly isAnswered: boolean;
  /** Known only from events that are not stored: a client that joins later must ask the server for it. */
  readonly isLive: boolean;
}

export type AttentionRequest = {
  readonly [T in AttentionEvent]: { readonly type: T; readonly data: EventData<T> };
}[AttentionEvent];
export type AttentionEvent =
  | "permission.requested"
  | "user_input.requested"
  | "exit_plan_mode.requested"
  | "elicitation.requested"
  | "mcp.oauth_required"
  | "session_limits_exhausted.requested"
  | "auto_mode_switch.requested";

export interface QueuedMessage {
  readonly messageId: string;
  readonly text: string;
  /** `immediate` reaches the agent before its next model call. */
  readonly mode: "enqueue" | "immediate";
  /** The agent that it is for; undefined for the main agent. */
  readonly agentId: string | undefined;
  readonly at: number;
  readonly source: string | undefined;
  readonly attachments: number;
}

export interface PlanView {
  /** The list that the main agent keeps with `update_todo`, or the rows that a surface has read from the table `todos`. */
  readonly items: readonly PlanItem[];
  /** Changes of the table `todos`, which is not in the log: read it again when this number changes. */
  readonly tableChanges: number;
  /** Changes of plan.md. */
  readonly fileChanges: number;
}

export interface BudgetView {
  readonly maxAiCredits: number | undefined;
  readonly usedNanoAiu: number | undefined;
  /** The last limit that ended the work of an agent. */
  readonly reached: (EventData<"troupe.limit_reached"> & { readonly agentId: string | undefined }) | undefined;
}

export interface ScheduleView {
  readonly id: number;
  readonly prompt: string;
  readonly isRecurring: boolean;
  readonly intervalMs: number | undefined;
  /** When a prompt that is sent once is due. */
  readonly at: number | undefined;
  readonly createdAt: number;
  readonly origin: "user" | "model";
}

export interface FactoryRunView {
  readonly runId: string;
  readonly name: string;
  readonly description: string;
  readonly phases: readonly string[];
  /** The title of the phase that was begun last. */
  readonly phase: string | undefined;
  readonly lastLine: string;
  readonly status: "running" | EventData<"troupe.factory_end">["status"];
  readonly attempt: number;
  readonly steps: number;
  readonly agents: readonly string[];
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  readonly error: string | undefined;
}

export interface AutopilotView {
  /** Number of automatic continuations since the last message of the user. */
  readonly continues: number;
  readonly completed: { readonly summary: string | undefined; readonly at: number } | undefined;
  readonly objectiveChanges: number;
}

/** An MCP server, known from events that are not stored. */
export interface ServerView {
  readonly name: string;
  readonly status: string;
  readonly error: string | undefined;
}
