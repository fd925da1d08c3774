/**
 * What troupe remembers between sessions: facts that a person can read, correct and take back. A fact is told to a model
 * only when a person accepted it, and only in the repository it belongs to. Where facts are kept varies behind one port.
 */
import * as z from "zod";
import type { Disk } from "../../lib/node/disk.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";

export const memoryScopes = ["repository", "user"] as const;
export type MemoryScope = (typeof memoryScopes)[number];

/** In characters, after white space has been made single. */
export const memoryLimits = { subject: 80, fact: 500, citations: 1000, reason: 1000 } as const;

/** Per place, so that a memory stays something a person can read. */
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

/** A fact as it is stored: everything but how often it was used. */
export const StoredFact = z.lazy(() =>
  z.object({
    id: z.string().regex(/^[\w-]{4,64}$/),
    subject: z.string().min(1).max(memoryLimits.subject),
    fact: z.string().min(1).max(memoryLimits.fact),
    citations: z.string().max(memoryLimits.citations),
    reason: z.string().max(memoryLimits.reason),
    scope: z.enum(memoryScopes),
    /** Which repository, or which user, it is about: the key of its place. */
    place: z.string().min(1).max(100),
    /** How it came here: a tool call of a session, a command of the user, a file. */
    source: z.object({
      kind: z.enum(["tool", "command", "import", "repository-file", "consolidation"]),
      detail: z.string().max(400).exactOptional(),
    }),
    author: z.enum(["person", "agent", "import"]),
    status: z.enum(["proposed", "accepted", "retracted"]),
    createdAt: z.string().max(40),
    expiresAt: z.string().max(40).exactOptional(),
    /** The fact that this one takes the place of, once it is accepted. */
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
  /** How many sessions were told of it. */
  readonly uses: number;
  readonly lastUsedAt?: string;
}

export type FactContent = Pick<StoredFact, "subject" | "fact" | "citations" | "reason">;

export interface FactDraft extends FactContent {
  readonly scope: MemoryScope;
  readonly author: StoredFact["author"];
  readonly source: StoredFact["source"];
  /** "accepted" only when a person saw this very text and agreed. */
  readonly status: "proposed" | "accepted";
  readonly expiresAt?: string;
  readonly supersedes?: string;
}

export interface VoteRequest {
  /** The exact words of the fact. */
  readonly fact: string;
  readonly direction: "upvote" | "downvote";
  readonly reason: string;
  /** One voter has one vote per fact. */
  readonly voter: string;
}

/** What a session is told at its start. */
export interface Recall {
  /** The section of the system prompt: wrapped, quoted, at most 4 kB. Absent when there is nothing to tell. */
  readonly text?: string;
  /** The facts in it, for `used`. */
  readonly ids: readonly string[];
  /** How many facts there are, told or not. */
  readonly count: number;
  /** For people: what could not be read, or why there is no memory this time. */
  readonly notices: readonly string[];
  /** What the store says of its tools; a missing `vote` where it has votes means that voting is not offered. */
  readonly definitions?: MemoryDefinitions;
}

export interface MemoryDefinitions {
  readonly store?: { readonly description?: string; readonly scopes?: readonly MemoryScope[] };
  readonly vote?: { readonly description?: string };
  /** Goes with the description of `store_memory`. */
  readonly storeInstructions?: string;
}

export type StoreOutcome = "accepted" | "proposed" | "known";

/** Where facts are kept. Failures that someone can act on are `TroupeError`s; `recall` and `used` never fail. */
export interface MemoryStore {
  readonly kind: "local" | "repository-file" | "service" | "injected";
  readonly scopes: readonly MemoryScope[];
  readonly hasVotes: boolean;
  /** True when the store has newer definitions of its tools than `recall` has returned. */
  readonly isOutdated?: boolean;
  recall(signal?: AbortSignal): Promise<Recall>;
  store(draft: FactDraft, signal?: AbortSignal): Promise<{ readonly id: string; readonly outcome: StoreOutcome }>;
  vote(vote: VoteRequest, signal?: AbortSignal): Promise<void>;
  /** Counts a session that was told of these facts. */
  used(ids: readonly string[]): Promise<void>;
  /** At the end of the session: what was held back is written now. */
  close(): Promise<void>;
}

/** What every way of keeping facts on disk needs. */
export interface MemoryPorts {
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly redactor: Redactor;
}

/** A vote more, or the same one turned around. Votes beyond the cap are counted, and their voters forgotten. */
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
