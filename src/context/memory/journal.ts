/**
 * The journal of one memory space: a file under the home to which one process at a time appends changes. An acknowledged
 * change survives a kill and a power cut. Damaged lines are moved aside and reported.
 */
import { join } from "node:path";
import { withFileLock } from "../../lib/node/file-lock.ts";
import { plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { foldTransactions, lastUndoable, type MemoryState, reversalOf } from "./fold.ts";
import {
  appendTransaction,
  type JournalFile,
  readJournalFile,
  removeLeftovers,
  rewriteJournal,
} from "./journal-file.ts";
import type { Transaction } from "./journal-line.ts";
import type { MemoryPorts, MemoryScope, StoredFact } from "./memory.ts";
import type { MemorySpace } from "./space.ts";

export interface MemoryJournal {
  readonly path: string;
  readonly space: MemorySpace;
  readonly scope: MemoryScope;
  /** Throws a `TroupeError` when the file cannot be read. */
  read(): MemoryState & { readonly notices: readonly string[] };
  /** Reads, decides and writes atomically. Writes nothing if `decide` returns no facts. */
  transact(request: ChangeRequest, decide: (state: MemoryState) => readonly StoredFact[]): Promise<void>;
  /** Undoes one change, or the last one. The facts are then exactly what they were before it. */
  undo(by: string, transactionId?: string): Promise<Transaction>;
  used(ids: readonly string[]): Promise<void>;
  /** Deletes the facts and their whole history from the files. This cannot be undone. */
  purge(ids: readonly string[]): Promise<void>;
}

interface ChangeRequest {
  readonly action: Exclude<Transaction["action"], "undo" | "used">;
  /** `person`, `import`, or `agent:` and the session id. */
  readonly by: string;
  /** Must not contain words of the fact. */
  readonly note?: string;
}

/** After this many use records, they are merged into one. */
const MAX_USE_RECORDS = 50;
const USE_WAIT_MS = 2_000;

export function openJournal(options: {
  readonly stateRoot: string;
  readonly space: MemorySpace;
  readonly scope: MemoryScope;
  readonly ports: Pick<MemoryPorts, "disk" | "stamp">;
}): MemoryJournal {
  const { space, scope, ports } = options;
  const path = join(options.stateRoot, "memory", `${space.key}.jsonl`);
  const file: Held = { path, place: space.key, ...ports };
  const locked = <T>(work: () => Promise<T>, maxWaitMs?: number): Promise<T> =>
    withFileLock({ path, ...ports, Failure: TroupeError, ...(maxWaitMs && { maxWaitMs }) }, work);
  return {
    path,
    space,
    scope,
    read() {
      const { transactions, damaged } = readJournalFile(path, space.key);
      const lost = `${path}: ${plural(damaged.length, "line")} damaged and not used.`;
      return { ...foldTransactions(transactions), notices: damaged.length === 0 ? [] : [lost] };
    },
    transact: (request, decide) =>
      locked(async () => {
        const before = load(file);
        const facts = decide(foldTransactions(before.transactions));
        if (facts.length > 0) await append(file, before, { ...request, facts: [...facts] });
      }),
    undo: (by, transactionId) => locked(() => undo(file, by, transactionId)),
    used: (ids) => locked(() => countUse(file, ids), USE_WAIT_MS),
    purge: (ids) =>
      locked(async () => {
        await rewriteJournal(ports.disk, path, without(new Set(ids), load(file).transactions));
        await removeLeftovers(ports.disk, path);
      }),
  };
}

/** The file while its lock is held. */
interface Held extends Pick<MemoryPorts, "disk" | "stamp"> {
  readonly path: string;
  readonly place: string;
}

const load = ({ path, place }: Held): JournalFile => readJournalFile(path, place);

async function append(
  { path, place, disk, stamp }: Held,
  before: JournalFile,
  change: Omit<Transaction, "seq" | "place" | "id" | "at">,
): Promise<void> {
  const seq = (before.transactions.at(-1)?.seq ?? 0) + 1;
  const at = new Date(stamp.now()).toISOString();
  await appendTransaction({ path, disk }, before, { seq, place, id: stamp.id("change"), at, ...change });
}

async function undo(file: Held, by: string, transactionId: string | undefined): Promise<Transaction> {
  const before = load(file);
  const target = undoTarget(before.transactions, transactionId);
  const { facts, absent, conflicts } = reversalOf(target, before.transactions);
  if (conflicts.length > 0) {
    throw new TroupeError("failed", `Nothing was undone: ${conflicts.join(", ")} changed again later.`, {
      hint: "Undo the later change first.",
    });
  }
  await append(file, before, { by, action: "undo", undoes: target.id, facts, ...(absent.length > 0 && { absent }) });
  return target;
}

async function countUse(file: Held, ids: readonly string[]): Promise<void> {
  const before = load(file);
  const { facts } = foldTransactions(before.transactions);
  const at = new Date(file.stamp.now()).toISOString();
  const known = ids.filter((id) => facts.has(id));
  if (known.length === 0) return;
  const used = Object.fromEntries(known.map((id) => [id, { uses: 1, at }]));
  await append(file, before, { by: "troupe", action: "used", facts: [], used });
  const records = before.transactions.filter(({ action }) => action === "used").length;
  if (records >= MAX_USE_RECORDS) await rewriteJournal(file.disk, file.path, withUsesTogether(load(file).transactions));
}

function undoTarget(transactions: readonly Transaction[], id: string | undefined): Transaction {
  const target = id === undefined ? lastUndoable(transactions) : transactions.find((other) => other.id === id);
  if (target !== undefined && target.action !== "used") return target;
  throw new TroupeError("usage", id === undefined ? "There is nothing to undo." : `There is no change ${id}.`, {
    hint: "`troupe memory show <id>` names the changes of a fact.",
  });
}

function withUsesTogether(transactions: readonly Transaction[]): Transaction[] {
  const last = transactions.findLast(({ action }) => action === "used");
  if (last === undefined) return [...transactions];
  const used = Object.fromEntries(
    [...foldTransactions(transactions).facts.values()].flatMap(({ id, uses, lastUsedAt }) =>
      lastUsedAt === undefined ? [] : [[id, { uses, at: lastUsedAt }]],
    ),
  );
  return transactions.flatMap((transaction) => {
    if (transaction.action !== "used") return [transaction];
    return transaction === last ? [{ ...last, used }] : [];
  });
}

/** Removes facts from the transactions. A transaction that loses facts loses its note too. */
function without(ids: ReadonlySet<string>, transactions: readonly Transaction[]): Transaction[] {
  return transactions.flatMap((transaction) => {
    const { facts, absent = [], used, note, ...rest } = transaction;
    const kept = facts.filter(({ id }) => !ids.has(id)).map((fact) => withoutReference(fact, ids));
    const keptAbsent = absent.filter((id) => !ids.has(id));
    const keptUsed = Object.entries(used ?? {}).filter(([id]) => !ids.has(id));
    if (kept.length + keptAbsent.length + keptUsed.length === 0) return [];
    const isWhole = kept.length === facts.length;
    return [
      {
        ...rest,
        ...(isWhole && note !== undefined && { note }),
        facts: kept,
        ...(keptAbsent.length > 0 && { absent: keptAbsent }),
        ...(keptUsed.length > 0 && { used: Object.fromEntries(keptUsed) }),
      },
    ];
  });
}

function withoutReference({ supersedes, ...fact }: StoredFact, ids: ReadonlySet<string>): StoredFact {
  return supersedes === undefined || ids.has(supersedes) ? fact : { ...fact, supersedes };
}
