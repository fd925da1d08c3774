/** The view while it is folded: the same members as in `view.ts`, writable. */
import type { SessionEvent } from "../protocol/event.ts";
import type { Block, ToolCard } from "./blocks.ts";
import type { Splitter } from "./markdown-parts.ts";
import type { AgentView, Spent, StreamedParts, View, WorkerCard } from "./view.ts";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export type StreamingDraft = Writable<Omit<StreamedParts, "blocks">> & {
  blocks: Block[];
  readonly splitter: Splitter;
  /** Number of Markdown parts that are finished. */
  parts: number;
  hasReasoningBlock: boolean;
};

export type AgentDraft = Writable<Omit<AgentView, "tools" | "blocks" | "streaming" | "card">> & {
  readonly tools: Map<string, ToolCard>;
  blocks: Block[];
  /** Characters in `blocks`. */
  size: number;
  streaming: StreamingDraft | undefined;
  card: WorkerCard | undefined;
  /** The last message asked for calls: more turns follow. */
  hasCalls: boolean;
  /** Task states tell its status; events of the wire alone do not. */
  isTracked: boolean;
};

export type ViewDraft = Writable<
  Omit<View, "session" | "main" | "agents" | "attention" | "queue" | "schedules" | "runs" | "servers">
> & {
  readonly session: Writable<View["session"]>;
  readonly main: AgentDraft;
  readonly agents: Map<string, AgentDraft>;
  readonly attention: Writer<View["attention"]>;
  queue: View["queue"];
  readonly schedules: Writer<View["schedules"]>;
  readonly runs: Writer<View["runs"]>;
  readonly servers: Writer<View["servers"]>;
  /** Characters in the blocks of all agents but the main one. */
  size: number;
};

type Writer<M> = M extends ReadonlyMap<infer K, infer V> ? Map<K, V> : never;

/** One event with everything that a fold needs to place it. */
export interface FoldStep {
  readonly view: ViewDraft;
  readonly event: SessionEvent;
  readonly at: number;
  /** The agent of the event; undefined when it is not known. */
  readonly agent: AgentDraft | undefined;
}

export const NOTHING_SPENT: Spent = Object.freeze({
  tools: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  costUsd: 0,
  isCostKnown: true,
  requests: 0,
});

export const MAIN = "";

export function newView(): ViewDraft {
  return {
    sequence: 0,
    revision: 0,
    lastEventId: undefined,
    needsReload: false,
    session: {
      id: "",
      name: undefined,
      startedAt: undefined,
      openings: 0,
      endedAt: undefined,
      cwd: undefined,
      branch: undefined,
      repository: undefined,
      mode: "interactive",
      model: undefined,
      reasoningEffort: undefined,
      permissionMode: "manual",
      isIdle: false,
      isMainIdle: false,
    },
    main: newAgent({ id: MAIN, kind: "main", name: "main", at: 0 }),
    agents: new Map(),
    droppedAgents: 0,
    attention: new Map(),
    queue: [],
    plan: { items: [], tableChanges: 0, fileChanges: 0 },
    budget: { maxAiCredits: undefined, usedNanoAiu: undefined, reached: undefined },
    schedules: new Map(),
    runs: new Map(),
    autopilot: { continues: 0, completed: undefined, objectiveChanges: 0 },
    servers: new Map(),
    size: 0,
  };
}

export function newAgent(
  about: Pick<AgentView, "id" | "kind" | "name"> & Partial<AgentView> & { readonly at: number },
): AgentDraft {
  const { at, ...given } = about;
  return {
    parentId: undefined,
    depth: 0,
    displayName: about.name,
    description: "",
    prompt: "",
    status: "idle",
    reason: undefined,
    error: undefined,
    result: undefined,
    toolCallId: undefined,
    isAwaited: false,
    model: undefined,
    worktree: undefined,
    factoryRunId: undefined,
    createdAt: at,
    startedAt: at,
    endedAt: undefined,
    isPast: false,
    lastAt: at,
    modelCalls: 0,
    messages: 0,
    intent: "",
    lastTool: undefined,
    lastOutput: "",
    spent: NOTHING_SPENT,
    spentBefore: NOTHING_SPENT,
    subtree: NOTHING_SPENT,
    limits: undefined,
    context: undefined,
    modelWait: undefined,
    compactingSince: undefined,
    droppedBlocks: 0,
    ...given,
    tools: new Map(),
    blocks: [],
    size: 0,
    streaming: undefined,
    card: undefined,
    hasCalls: false,
    isTracked: true,
  };
}

/** The agent of an event; undefined when nothing is known of it. */
export function agentOf<A extends AgentView>(
  view: { readonly main: A; readonly agents: ReadonlyMap<string, A> },
  id: string | undefined,
): A | undefined {
  return id === undefined || id === MAIN ? view.main : view.agents.get(id);
}

export const isBusy = ({ status }: Pick<AgentView, "status">): boolean => status === "queued" || status === "running";
