/** Blocks of a transcript. A block never changes once it is in the transcript; what still changes is in `AgentView`. */
import type { BinaryReference } from "../protocol/event.ts";

interface Placed {
  /** Unique within the session. */
  readonly id: string;
  /** Undefined for the main agent. */
  readonly agentId: string | undefined;
  readonly at: number;
  /** The stored event that it stands for. Undefined for parts of a reply that is still being written. */
  readonly eventId: string | undefined;
}

export type Block =
  | UserBlock
  | AssistantBlock
  | ReasoningBlock
  | ToolBlock
  | NoticeBlock
  | ErrorBlock
  | ApprovalBlock
  | AnswerBlock
  | PlanBlock
  | CompactionBlock
  | ModeBlock
  | ModelBlock
  | AgentBlock
  | CompletionBlock
  | RewindBlock;

export interface UserBlock extends Placed {
  readonly kind: "user";
  readonly text: string;
  /** Undefined when a person typed it; else `schedule`, `autopilot` and so on. */
  readonly source: string | undefined;
  readonly delivery: "idle" | "steering" | "queued" | undefined;
  /** Names of what is attached. */
  readonly attachments: readonly string[];
  readonly messageId: string | undefined;
}

export interface AssistantBlock extends Placed {
  readonly kind: "assistant";
  readonly messageId: string;
  /** Index of the part in its message. */
  readonly part: number;
  readonly markdown: MarkdownPart;
}

/** A piece of Markdown that can be drawn alone. */
export interface MarkdownPart {
  readonly kind: "text" | "heading" | "item" | "table" | "code";
  /** The source lines; of code without its fences. */
  readonly text: string;
  /** An empty line stands before it in the source. */
  readonly gap: boolean;
  /** Of code: the word behind the fence. */
  readonly language: string;
  /** Of code, which is cut into pieces: whether the fence opens and closes in this one. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

export interface ReasoningBlock extends Placed {
  readonly kind: "reasoning";
  readonly messageId: string;
  readonly text: string;
}

export interface ToolBlock extends Placed {
  readonly kind: "tool";
  readonly card: ToolCard;
}

export type ToolState = "running" | "done" | "failed" | "denied" | "rejected" | "interrupted";

export interface ToolCard {
  readonly toolCallId: string;
  readonly name: string;
  /** Name and main argument in one line. */
  readonly title: string;
  /** The arguments as JSON, bounded. */
  readonly arguments: string;
  readonly state: ToolState;
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** A person ran it; the model does not read its result. */
  readonly isUserRequested: boolean;
  /** The user ran it with `!!`: its output does not go along with a prompt either. */
  readonly isHidden: boolean;
  readonly mcpServer: string | undefined;
  /** The tool's own words about what it is doing. */
  readonly progress: string | undefined;
  readonly output: OutputText;
  /** Unified diff of an edit, bounded. */
  readonly diff: OutputText | undefined;
  readonly exitCode: number | undefined;
  readonly error: string | undefined;
  readonly images: readonly BinaryReference[];
  /** Agents that this call started. */
  readonly children: readonly string[];
  /** Set while the call waits for something that is not an agent or a person, such as a lock. */
  readonly waitsFor: string | undefined;
}

/** Beginning and end of a text; the rest is in the event that the block names. */
export interface OutputText {
  readonly head: string;
  /** Empty when `head` is everything. */
  readonly tail: string;
  readonly hiddenLines: number;
  readonly hiddenCharacters: number;
}

export interface NoticeBlock extends Placed {
  readonly kind: "notice";
  readonly level: "info" | "warning";
  readonly topic: string;
  readonly text: string;
  readonly tip: string | undefined;
}

export interface ErrorBlock extends Placed {
  readonly kind: "error";
  readonly topic: string;
  readonly text: string;
  /** The advice for the user. */
  readonly advice: string | undefined;
}

export interface ApprovalBlock extends Placed {
  readonly kind: "approval";
  readonly requestId: string;
  readonly title: string;
  readonly decision: "approved" | "denied" | "cancelled";
  /** For how long it was approved: `once`, `session`, `location`; else who or what denied it. */
  readonly how: string;
  readonly feedback: string | undefined;
  /** In the transcript of the main agent: the agent that asked the user. The agent's own transcript has the same block. */
  readonly askedBy: string | undefined;
}

/** A question of an agent (`ask_user`) and its answer, in place of the tool's card. */
export interface AnswerBlock extends Placed {
  readonly kind: "answer";
  readonly toolCallId: string;
  readonly question: string;
  /** Undefined when nobody answered. */
  readonly answer: string | undefined;
}

/** The list of todos as it was set (`update_todo`), in place of the tool's card. */
export interface PlanBlock extends Placed {
  readonly kind: "plan";
  readonly items: readonly PlanItem[];
}

export interface PlanItem {
  readonly title: string;
  readonly status: "open" | "in_progress" | "done" | "blocked";
}

export interface CompactionBlock extends Placed {
  readonly kind: "compaction";
  readonly success: boolean;
  readonly trigger: string | undefined;
  readonly tokensBefore: number | undefined;
  readonly tokensAfter: number | undefined;
  readonly messagesRemoved: number | undefined;
  readonly summary: string;
  readonly error: string | undefined;
}

export interface ModeBlock extends Placed {
  readonly kind: "mode";
  readonly from: string;
  readonly to: string;
}

export interface ModelBlock extends Placed {
  readonly kind: "model";
  readonly from: string | undefined;
  readonly to: string;
  readonly reasoningEffort: string | undefined;
  readonly cause: string | undefined;
}

/** An agent in the background became idle or ended; in the transcript of the agent that started it. */
export interface AgentBlock extends Placed {
  readonly kind: "agent";
  readonly childId: string;
  readonly name: string;
  readonly status: "idle" | "completed" | "failed" | "cancelled";
  readonly reason: string | undefined;
  readonly durationMs: number;
  readonly result: string;
  readonly error: string | undefined;
}

/** The main agent declared its task complete. */
export interface CompletionBlock extends Placed {
  readonly kind: "completion";
  readonly summary: string;
}

export interface RewindBlock extends Placed {
  readonly kind: "rewind";
  readonly eventsRemoved: number;
  readonly isRestored: boolean;
}
