/** Types that the page and its server exchange. Both sides import these types; nothing here runs. */
import type { Price } from "../model/prices.ts";
import type { BudgetRow, RateRow } from "../runtime/cluster/limits.ts";
import type { ClusterSession, OpenSession, QueueState, TakeOver, WorkerState } from "../runtime/cluster/states.ts";
import type { AttentionItem } from "../view/view.ts";

/** `working`: an agent is at work. `waiting`: a request waits for a person. `idle`: open, nothing to do. `closed`: no process has it. */
export type SessionState = "working" | "waiting" | "idle" | "closed";

export interface SessionRow {
  readonly id: string;
  readonly name: string;
  readonly cwd: string;
  readonly branch: string | undefined;
  readonly repository: string | undefined;
  readonly model: string | undefined;
  readonly state: SessionState;
  /** The process that has it open: this server, a process that can be joined, or one that cannot. */
  readonly holder: "here" | "joinable" | "other" | undefined;
  readonly holderPid: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly turns: number;
  readonly costUsd: number | undefined;
  /** Agents at work and agents in all; zero for sessions that were not read. */
  readonly busyAgents: number;
  readonly agents: number;
  readonly attention: readonly AttentionRow[];
  /** It is in the database of a cluster: its files are on the machines of workers. */
  readonly isInDatabase: boolean;
  /** Set while it has open work there. */
  readonly work: OpenWork | undefined;
}

export type OpenWork = Omit<OpenSession, "session">;

export interface AttentionRow {
  readonly item: AttentionItem;
  /** Names of the agents that cannot continue before it is answered. */
  readonly blocks: readonly string[];
  /** The name of the agent that asks. */
  readonly agent: string;
}

/** A message of the stream about the list of sessions. */
export interface ListMessage {
  readonly rows: readonly SessionRow[];
  readonly removed: readonly string[];
  /** The rows are all there are. */
  readonly isWhole: boolean;
  /** Says why the sessions of a database cannot be read; empty since they can again. */
  readonly problem?: string;
}

/** A message of the stream: everything that the session has stored was sent. */
export interface ReadyMessage {
  readonly isInDatabase: boolean;
}

/** A sign-in to an MCP server. Without an address it is done. */
export interface SignInBegun {
  readonly address?: string;
}

export interface SessionHit {
  readonly sessionId: string;
  readonly name: string;
  readonly at: string;
  readonly kind: string;
  readonly text: string;
}

export interface ModelPrice {
  readonly ref: string;
  readonly name: string;
  readonly price: Price;
}

export interface Boot {
  readonly version: string;
  readonly home: string;
  readonly cwd: string;
  /** The name of the database of a cluster, if there is one. */
  readonly database?: string;
}

/** The state of the cluster of a database, with its requests worded for people. */
export interface ClusterView {
  readonly workers: readonly WorkerState[];
  readonly queues: readonly QueueState[];
  readonly budgets: readonly BudgetRow[];
  readonly limits: readonly RateRow[];
  readonly sessions: readonly OnWire<ClusterSession>[];
  readonly takeOvers: readonly OnWire<TakeOver>[];
  readonly requests: readonly ClusterRequest[];
  /** The database role is that of a tenant: workers, requests and limits are empty, and nothing can be changed. */
  readonly isTenant: boolean;
}

/** Times are ISO 8601. */
type OnWire<T> = { readonly [K in keyof T]: T[K] extends Date ? string : T[K] };

export interface ClusterRequest {
  readonly id: string;
  readonly sessionId: string;
  /** `other`: only the program that submitted the work answers it. */
  readonly kind: "permission" | "question" | "plan" | "other";
  readonly title: string;
  /** Markdown in which text of others is fenced. */
  readonly text: string;
  readonly choices: readonly string[];
  readonly allowFreeform: boolean;
}

/** One change of a file by a tool or a command. */
export interface ChangeStep {
  readonly seq: number;
  readonly time: string;
  /** The id of the message that was being answered. */
  readonly turn: string;
  readonly toolCallId: string;
  readonly path: string;
  readonly kind: "added" | "modified" | "deleted";
  /** Undefined for files that are not text, too large, or changed by a command that did not finish. */
  readonly diff: string | undefined;
}

export interface WorktreeRow {
  readonly taskId: string;
  /** It belongs to the session itself, which is a fork. */
  readonly isFork: boolean;
  readonly root: string;
  readonly branch: string;
  readonly state: string;
  readonly ahead: number;
  readonly files: readonly string[];
  readonly conflicts: readonly string[];
  readonly dirty: readonly string[];
  readonly diff: string;
  /** It changes names that only the command line merges. */
  readonly isProtected: boolean;
}

export interface KnowledgeView {
  readonly facts: readonly {
    readonly id: string;
    readonly scope: string;
    readonly status: string;
    readonly subject: string;
    readonly fact: string;
    readonly citations: string;
    readonly reason: string;
    readonly author: string;
    readonly source: string;
    readonly votes: string;
    /** Undefined for an earlier moment. */
    readonly uses: number | undefined;
    readonly history: readonly { readonly at: string; readonly action: string; readonly by: string }[];
  }[];
  readonly notes: readonly {
    readonly src: string;
    readonly name: string;
    readonly description: string;
    readonly content: string;
  }[];
  readonly changes: readonly {
    readonly id: number;
    readonly at: string;
    readonly action: string;
    readonly actor: string;
    readonly isUndone: boolean;
    readonly names: readonly string[];
  }[];
  /** Times at which a fact or a note changed, oldest first, in the whole history. */
  readonly moments: readonly string[];
}
