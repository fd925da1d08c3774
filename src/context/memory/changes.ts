/**
 * Computes changes to the facts of a memory space. Each function returns the changed facts and throws a `TroupeError` for a
 * change that is not allowed.
 */
import { defined } from "../../lib/defined.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { sameness } from "./content.ts";
import type { MemoryState } from "./fold.ts";
import {
  type Fact,
  type FactContent,
  type FactDraft,
  isCurrent,
  MAX_FACTS,
  MAX_PROPOSALS,
  type StoredFact,
  type StoreOutcome,
  type VoteRequest,
  withVote,
} from "./memory.ts";

/** A proposal expires after this many days without approval. */
const PROPOSAL_DAYS = 30;
const DAY_MS = 86_400_000;

export interface StoreChange {
  readonly outcome: StoreOutcome;
  readonly id: string;
  readonly facts: readonly StoredFact[];
}

/** Stores a fact. Stores no duplicate, and no fact that the user has retracted. */
export function storeChange(state: MemoryState, draft: FactDraft, into: { place: string; stamp: Stamp }): StoreChange {
  const now = into.stamp.now();
  const same = sameFact(state.facts.values(), draft.fact, now);
  if (same !== undefined) refuseRetracted(same, draft);
  if (same?.status === "accepted" || (same?.status === "proposed" && draft.status === "proposed")) {
    return { outcome: "known", id: same.id, facts: [] };
  }
  requireRoom(state, draft, now);
  const id = same?.id ?? newId(state, into.stamp);
  const { expiresAt = draft.status === "proposed" ? daysFrom(now, PROPOSAL_DAYS) : undefined, ...rest } = draft;
  const fact: StoredFact = {
    ...rest,
    id,
    place: into.place,
    createdAt: new Date(now).toISOString(),
    ...defined({ expiresAt }),
    votes: { up: 0, down: 0, by: [] },
  };
  const retired = draft.status === "accepted" ? superseded(state, fact) : [];
  return { outcome: draft.status, id, facts: [fact, ...retired] };
}

/** Returns the fact with the same text: retracted, accepted, or proposed and not expired. */
export function sameFact(facts: Iterable<Fact>, words: string, now: number): Fact | undefined {
  const key = sameness(words);
  return [...facts].find(
    (fact) => sameness(fact.fact) === key && (fact.status === "retracted" || isCurrent(fact, now)),
  );
}

export function refuseRetracted(fact: Fact, { author }: Pick<FactDraft, "author">): void {
  if (fact.status !== "retracted" || author === "person") return;
  throw new TroupeError("failed", "The user has removed this fact from the memory.", {
    hint: "Only the user can add it again: troupe memory add",
  });
}

/** Accepts facts; only for the user. Retracts the facts they supersede in the same change. */
export function acceptChange(state: MemoryState, ids: readonly string[]): StoredFact[] {
  return ids.flatMap((id) => {
    const fact = requireFact(state, id);
    if (fact.status === "accepted") return [];
    const { expiresAt: _, ...rest } = storedFactOf(fact);
    const accepted: StoredFact = { ...rest, status: "accepted" };
    return [accepted, ...superseded(state, accepted)];
  });
}

export function retractChange(state: MemoryState, ids: readonly string[]): StoredFact[] {
  return ids.flatMap((id) => {
    const fact = requireFact(state, id);
    return fact.status === "retracted" ? [] : [{ ...storedFactOf(fact), status: "retracted" as const }];
  });
}

export interface FactEdit extends Partial<FactContent> {
  /** `null` means that the fact never expires. */
  readonly expiresAt?: string | null;
}

/** Edits a fact; only for the user, who becomes its author. A new text resets the votes. */
export function editChange(state: MemoryState, id: string, edit: FactEdit): StoredFact[] {
  const { expiresAt: former, ...fact } = storedFactOf(requireFact(state, id));
  const { expiresAt = former, ...content } = edit;
  const isOther = content.fact !== undefined && content.fact !== fact.fact;
  const changed: StoredFact = {
    ...fact,
    ...content,
    author: "person",
    ...(isOther && { votes: { up: 0, down: 0, by: [] } }),
    ...(typeof expiresAt === "string" && { expiresAt }),
  };
  return [changed];
}

export function voteChange(fact: Fact, { direction, reason, voter }: VoteRequest, now: number): StoredFact {
  if (fact.votes.by.some((vote) => vote.voter === voter && vote.direction === direction)) {
    throw new TroupeError("failed", `This session has already voted on the fact: ${direction}.`);
  }
  return withVote(storedFactOf(fact), { voter, direction, reason, at: new Date(now).toISOString() });
}

function requireFact(state: MemoryState, id: string): Fact {
  const fact = state.facts.get(id);
  if (fact) return fact;
  throw new TroupeError("usage", `There is no fact ${id}.`, { hint: "See: troupe memory list" });
}

export function storedFactOf({ uses: _, lastUsedAt: __, ...fact }: Fact): StoredFact {
  return fact;
}

function superseded(state: MemoryState, { supersedes, place }: StoredFact): StoredFact[] {
  const former = supersedes === undefined ? undefined : state.facts.get(supersedes);
  if (former === undefined || former.place !== place || former.status === "retracted") return [];
  return [{ ...storedFactOf(former), status: "retracted" }];
}

function requireRoom(state: MemoryState, { status }: FactDraft, now: number): void {
  const current = [...state.facts.values()].filter((fact) => fact.status !== "retracted" && isCurrent(fact, now));
  const proposals = current.filter((fact) => fact.status === "proposed").length;
  const isFull = current.length >= MAX_FACTS || (status === "proposed" && proposals >= MAX_PROPOSALS);
  if (!isFull) return;
  const which = current.length >= MAX_FACTS ? `${MAX_FACTS} facts` : `${MAX_PROPOSALS} proposals`;
  throw new TroupeError("limit", `The memory is full: it holds ${which}.`, {
    hint: "The user can review them: troupe memory list, then accept or remove.",
  });
}

function newId({ facts }: MemoryState, stamp: Stamp): string {
  const whole = stamp.id("fact");
  const short = whole.slice(0, 8);
  return short.length >= 4 && !facts.has(short) ? short : whole;
}

export function daysFrom(now: number, days: number): string {
  return new Date(now + days * DAY_MS).toISOString();
}
