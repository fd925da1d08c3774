/** Folds the transactions of a memory into its facts. */

import { defined } from "../../lib/defined.ts";
import type { Transaction } from "./journal-line.ts";
import type { Fact, StoredFact } from "./memory.ts";

export interface MemoryState {
  readonly facts: ReadonlyMap<string, Fact>;
  readonly transactions: readonly Transaction[];
}

export interface HistoryEntry {
  readonly transaction: string;
  readonly at: string;
  readonly by: string;
  readonly action: Transaction["action"];
  readonly note?: string;
  /** The fact after the transaction; absent if it was removed. */
  readonly fact?: StoredFact;
}

export function foldTransactions(transactions: readonly Transaction[]): MemoryState {
  const stored = storedAfter(transactions);
  const used = new Map<string, { uses: number; at: string }>();
  for (const transaction of transactions) {
    for (const [id, { uses, at }] of Object.entries(transaction.used ?? {})) {
      used.set(id, { uses: (used.get(id)?.uses ?? 0) + uses, at });
    }
  }
  const facts = [...stored.values()].map((fact): [string, Fact] => {
    const use = used.get(fact.id);
    return [fact.id, { ...fact, uses: use?.uses ?? 0, ...defined({ lastUsedAt: use?.at }) }];
  });
  return { facts: new Map(facts), transactions };
}

/** Returns the transactions of one fact, oldest first. */
export function historyOf(id: string, { transactions }: MemoryState): HistoryEntry[] {
  return transactions.flatMap((transaction) => {
    const fact = transaction.facts.find((other) => other.id === id);
    if (fact === undefined && !transaction.absent?.includes(id)) return [];
    const { at, by, action, note } = transaction;
    return [{ transaction: transaction.id, at, by, action, ...defined({ note, fact }) }];
  });
}

export interface Reversal {
  readonly facts: StoredFact[];
  readonly absent: string[];
  /** Facts that were changed again since. */
  readonly conflicts: string[];
}

/** Returns the changes that undo a transaction. */
export function reversalOf(target: Transaction, transactions: readonly Transaction[]): Reversal {
  const before = storedAfter(transactions.slice(0, transactions.indexOf(target)));
  const now = storedAfter(transactions);
  const touched = [
    ...target.facts.map((fact) => ({ id: fact.id, after: JSON.stringify(fact) })),
    ...(target.absent ?? []).map((id) => ({ id, after: undefined })),
  ];
  const result: Reversal = { facts: [], absent: [], conflicts: [] };
  for (const { id, after } of touched) {
    const former = before.get(id);
    const current = now.get(id);
    if ((current && JSON.stringify(current)) !== after) result.conflicts.push(id);
    if (former) result.facts.push(former);
    else result.absent.push(id);
  }
  return result;
}

/** Returns the last change that is not undone and is not itself an undo. */
export function lastUndoable(transactions: readonly Transaction[]): Transaction | undefined {
  const undone = new Set(transactions.flatMap(({ undoes }) => undoes ?? []));
  return transactions.findLast(({ id, action }) => action !== "undo" && action !== "used" && !undone.has(id));
}

function storedAfter(transactions: readonly Transaction[]): Map<string, StoredFact> {
  const stored = new Map<string, StoredFact>();
  for (const { facts, absent = [] } of transactions) {
    for (const fact of facts) stored.set(fact.id, fact);
    for (const id of absent) stored.delete(id);
  }
  return stored;
}
