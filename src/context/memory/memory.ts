/**
 * The memory: facts that troupe remembers between sessions, and that the user can read, correct and undo. A model sees
 * a fact only if the user accepted it, and only in its repository. This folder has the stores behind the `MemoryStore`
 * port: local journals, a file of the repository, and a service.
 */
import * as z from "zod";
import type { Disk } from "../../lib/node/disk.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";

export const memoryScopes = ["repository", "user"] as const;
export type MemoryScope = (typeof memoryScopes)[number];

/** In characters, after whitespace is collapsed. */
export const memoryLimits = { subject: 80, fact: 500, citations: 1000, reason: 1000 } as const;

/** Maximum per memory space, so that the user can still read a memory. */
export const MAX_FACTS = 300;
export const MAX_PROPOSALS = 100;
const MAX_VOTERS = 200;

const FactVote = z.lazy(() =>
  z.object({
    voter: z.string().min(1).max(200),
    direction: z.enum(["upvote", "downvote"]),
    reason: z.string().max(memoryLimits.reason),
    at: z.string().max(40),
  }),
);

/** A fact as stored, without its use counts. */
export const StoredFact = z.lazy(() =>
  z.object({
    id: z.string().regex(/^[\w-]{4,64}$/),
    subject: z.string().min(1).max(memoryLimits.subject),
    fact: z.string().min(1).max(memoryLimits.fact),
    citations: z.string().max(memoryLimits.citations),
    reason: z.string().max(memoryLimits.reason),
    scope: z.enum(memoryScopes),
    /** Key of the repository or user that the fact is about. */
    place: z.string().min(1).max(100),
    /** The origin of the fact: a session's tool call, a user's command, a file. */
    source: z.object({
      kind: z.enum(["tool", "command", "import", "repository-file", "consolidation"]),
      detail: z.string().max(400).exactOptional(),
    }),
    author: z.enum(["person", "agent", "import"]),
    status: z.enum(["proposed", "accepted", "retracted"]),
    createdAt: z.string().max(40),
    expiresAt: z.string().max(40).exactOptional(),
    /** The fact that this one replaces once it is accepted. */
    supersedes: z.string().max(64).exactOptional(),
    votes: z.object({
      up: z.int().nonnegative(),
      down: z.int().nonnegative(),
      by: z.array(FactVote).max(MAX_VOTERS),
    }),
  }),
);
export type StoredFact = z.infer<typeof StoredFact>;

export interface Fact extends StoredFact {
  /** Number of sessions that received the fact. */
  readonly uses: number;
  readonly lastUsedAt?: string;
}

export type FactContent = Pick<StoredFact, "subject" | "fact" | "citations" | "reason">;

export interface FactDraft extends FactContent {
  readonly scope: MemoryScope;
  readonly author: StoredFact["author"];
  readonly source: StoredFact["source"];
  /** "accepted" only if the user saw this very text and approved it. */
  readonly status: "proposed" | "accepted";
  readonly expiresAt?: string;
  readonly supersedes?: string;
}

export interface VoteRequest {
  /** The fact's exact text. */
  readonly fact: string;
  readonly direction: "upvote" | "downvote";
  readonly reason: string;
  /** Each voter has one vote per fact. */
  readonly voter: string;
}

/** The memory for a new session. */
export interface Recall {
  /** The section for the system prompt: wrapped, quoted, at most 4 KiB. Absent if there are no facts. */
  readonly text?: string;
  /** Ids of the facts in `text`, for `used`. */
  readonly ids: readonly string[];
  /** Number of facts, including those that did not fit. */
  readonly count: number;
  /** For the user: unreadable facts, or why there is no memory in this session. */
  readonly notices: readonly string[];
  /** The store's definitions of its tools. If `vote` is missing, voting is not offered. */
  readonly definitions?: MemoryDefinitions;
}

export interface MemoryDefinitions {
  readonly store?: { readonly description?: string; readonly scopes?: readonly MemoryScope[] };
  readonly vote?: { readonly description?: string };
  /** Added to the description of `store_memory`. */
  readonly storeInstructions?: string;
}

export type StoreOutcome = "accepted" | "proposed" | "known";

/** Stores facts. Throws a `TroupeError` for a failure that the user can fix. `recall` and `used` never throw. */
export interface MemoryStore {
  readonly kind: "local" | "repository-file" | "service" | "injected";
  readonly scopes: readonly MemoryScope[];
  readonly hasVotes: boolean;
  /** True when the store has newer tool definitions than `recall` returned. */
  readonly isOutdated?: boolean;
  recall(signal?: AbortSignal): Promise<Recall>;
  store(draft: FactDraft, signal?: AbortSignal): Promise<{ readonly id: string; readonly outcome: StoreOutcome }>;
  vote(vote: VoteRequest, signal?: AbortSignal): Promise<void>;
  /** Counts a use of these facts by a session. */
  used(ids: readonly string[]): Promise<void>;
  /** Writes pending data at the end of the session. */
  close(): Promise<void>;
}

/** Dependencies of the stores on disk. */
export interface MemoryPorts {
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly redactor: Redactor;
}

/** Adds a vote or changes the voter's earlier one. Above the cap, votes are counted but their voters are not stored. */
export function withVote(fact: StoredFact, vote: StoredFact["votes"]["by"][number]): StoredFact {
  const former = fact.votes.by.find(({ voter }) => voter === vote.voter);
  const by = [...fact.votes.by.filter((other) => other !== former), vote].slice(-MAX_VOTERS);
  const counted = (direction: "upvote" | "downvote", before: number): number =>
    before - (former?.direction === direction ? 1 : 0) + (vote.direction === direction ? 1 : 0);
  return { ...fact, votes: { up: counted("upvote", fact.votes.up), down: counted("downvote", fact.votes.down), by } };
}

export function isCurrent(fact: Pick<StoredFact, "expiresAt">, now: number): boolean {
  return fact.expiresAt === undefined || Date.parse(fact.expiresAt) > now;
}
