/** The default memory: journals under the user's home, one per memory space. */

import { TroupeError } from "../../protocol/errors.ts";
import { refuseRetracted, type StoreChange, sameFact, storeChange, storedFactOf, voteChange } from "./changes.ts";
import { requireContent, sameness } from "./content.ts";
import { messageOf } from "./failure.ts";
import type { MemoryState } from "./fold.ts";
import type { MemoryJournal } from "./journal.ts";
import {
  type Fact,
  type FactDraft,
  isCurrent,
  type MemoryPorts,
  type MemoryScope,
  type MemoryStore,
  type Recall,
  type StoredFact,
  type StoreOutcome,
} from "./memory.ts";
import { memorySection } from "./section.ts";

export interface LocalMemory extends MemoryStore {
  readonly kind: "local";
  readonly journals: readonly MemoryJournal[];
  /** Stores many facts in one change. Each is stored or refused individually. */
  storeAll(drafts: readonly FactDraft[], scope: MemoryScope): Promise<readonly StoreResult[]>;
}

type StoreResult =
  | { readonly kind: "stored"; readonly id: string; readonly outcome: StoreOutcome }
  | { readonly kind: "refused"; readonly subject: string; readonly problem: string };

const actions = { person: "add", agent: "store", import: "import" } as const;

/** Returns the memory over these journals. New facts go into the first journal of their scope. */
export function localMemory(
  journals: readonly MemoryJournal[],
  ports: Pick<MemoryPorts, "stamp" | "redactor">,
): LocalMemory {
  const { stamp, redactor } = ports;
  const memory: LocalMemory = {
    kind: "local",
    journals,
    scopes: [...new Set(journals.map(({ scope }) => scope))],
    hasVotes: true,
    recall: async () => recallFrom(journals, stamp.now()),
    async store(draft) {
      const results: StoreChange[] = [];
      await inJournal(journals, draft, (state, journal, others) => {
        const result = oneDraft(draft, { state, journal, others, ports });
        results.push(result);
        return result.facts;
      });
      const [{ id, outcome } = { id: "", outcome: "known" as const }] = results;
      return { id, outcome };
    },
    async storeAll(drafts, scope) {
      const [first] = drafts;
      const results: StoreResult[] = [];
      if (first === undefined) return results;
      await inJournal(journals, { ...first, scope }, (before, journal, others) => {
        const facts = new Map(before.facts);
        for (const draft of drafts) {
          const result = tried(draft, { state: { ...before, facts }, journal, others, ports });
          for (const fact of result.facts) facts.set(fact.id, { uses: 0, ...fact });
          results.push(result.told);
        }
        return [...facts.values()].filter((fact) => before.facts.get(fact.id) !== fact).map(storedFactOf);
      });
      return results;
    },
    async vote(vote) {
      const found = findFact(journals, vote.fact, stamp.now());
      const reason = requireContent({ subject: "vote", fact: vote.fact, citations: "", reason: vote.reason }, redactor);
      await found.journal.transact({ action: "vote", by: vote.voter }, (state) => {
        const fact = state.facts.get(found.fact.id);
        if (fact === undefined || fact.status === "retracted") throw noSuchFact();
        return [voteChange(fact, { ...vote, reason: reason.reason }, stamp.now())];
      });
    },
    async used(ids) {
      for (const journal of journals) await journal.used(ids).catch(() => undefined);
    },
    close: async () => undefined,
  };
  return memory;
}

interface JournalContext {
  readonly state: MemoryState;
  readonly journal: MemoryJournal;
  /** The other journals of the same scope. Their facts count as duplicates too. */
  readonly others: readonly MemoryJournal[];
  readonly ports: Pick<MemoryPorts, "stamp" | "redactor">;
}

async function inJournal(
  journals: readonly MemoryJournal[],
  { scope, author, source }: FactDraft,
  decide: (state: MemoryState, journal: MemoryJournal, others: readonly MemoryJournal[]) => readonly StoredFact[],
): Promise<void> {
  const [journal, ...others] = journals.filter((candidate) => candidate.scope === scope);
  if (journal === undefined) throw new TroupeError("usage", `There is no memory for the scope ${scope}.`);
  const by = author === "agent" ? `agent:${source.detail ?? "unknown"}`.slice(0, 200) : author;
  await journal.transact({ action: actions[author], by }, (state) => decide(state, journal, others));
}

function oneDraft(draft: FactDraft, { state, journal, others, ports }: JournalContext): StoreChange {
  const safe = { ...draft, ...requireContent(draft, ports.redactor) };
  for (const other of others) {
    const same = sameFact(other.read().facts.values(), safe.fact, ports.stamp.now());
    if (same) refuseRetracted(same, safe);
    if (same?.status === "accepted") return { id: same.id, outcome: "known", facts: [] };
  }
  return storeChange(state, safe, { place: journal.space.key, stamp: ports.stamp });
}

function tried(draft: FactDraft, context: JournalContext): { told: StoreResult; facts: readonly StoredFact[] } {
  try {
    const { id, outcome, facts } = oneDraft(draft, context);
    return { told: { kind: "stored", id, outcome }, facts };
  } catch (error) {
    if (!(error instanceof TroupeError) || error.kind === "storage") throw error;
    return { told: { kind: "refused", subject: draft.subject, problem: error.message }, facts: [] };
  }
}

function recallFrom(journals: readonly MemoryJournal[], now: number): Recall {
  const notices: string[] = [];
  const facts = journals.flatMap((journal) => {
    try {
      const state = journal.read();
      notices.push(...state.notices);
      return [...state.facts.values()];
    } catch (error) {
      notices.push(messageOf(error));
      return [];
    }
  });
  const section = memorySection(facts, { spaceKeys: journals.map(({ space }) => space.key), now });
  return { ...(section.text !== "" && { text: section.text }), ids: section.ids, count: section.count, notices };
}

/** Finds a fact by its words. Accepted facts come first, because models have seen those. */
function findFact(
  journals: readonly MemoryJournal[],
  words: string,
  now: number,
): { journal: MemoryJournal; fact: Fact } {
  const key = sameness(words);
  const found = journals.flatMap((journal) =>
    [...journal.read().facts.values()]
      .filter((fact) => fact.status !== "retracted" && isCurrent(fact, now) && sameness(fact.fact) === key)
      .map((fact) => ({ journal, fact })),
  );
  const best = found.find(({ fact }) => fact.status === "accepted") ?? found[0];
  if (best === undefined) throw noSuchFact();
  return best;
}

function noSuchFact(): TroupeError {
  return new TroupeError("failed", "There is no such fact in the memory.", {
    hint: "Give the exact text of the fact, as in the memories of the system prompt.",
  });
}
