/** Remembered facts and the context board of a folder, for the dashboard. Decisions made here are those of the user. */
import { acceptChange, retractChange } from "../context/memory/changes.ts";
import { historyOf, type MemoryState } from "../context/memory/fold.ts";
import type { MemoryJournal } from "../context/memory/journal.ts";
import { openLocalMemory } from "../context/memory/open.ts";
import type { Disk } from "../lib/node/disk.ts";
import { createRedactor } from "../lib/redact/redact.ts";
import { secretValuesOf } from "../lib/redact/redact-values.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import { openBoardAdministration } from "../runtime/knowledge/board-admin.ts";
import type { KnowledgeView } from "./api.ts";
import { boardAt, factsAt, momentsOf } from "./knowledge-past.ts";

export interface KnowledgeParts {
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly disk: Disk;
  readonly stamp: Stamp;
}

const MAX_CHANGES = 50;

export class Knowledge {
  readonly #parts: KnowledgeParts;

  constructor(parts: KnowledgeParts) {
    this.#parts = parts;
  }

  /** Returns what is known for a folder: now, or as it was at an earlier moment, given as an ISO time. */
  async read(cwd: string, until?: string): Promise<KnowledgeView> {
    const journals = this.#journals(cwd).map((journal) => ({ scope: journal.scope, state: journal.read() }));
    const board = this.#board(cwd);
    try {
      const [rows, changes] = await Promise.all([board.board.rows(), board.board.changes()]);
      const shown = until === undefined ? { rows, changes } : boardAt(rows, changes, until);
      return {
        facts: journals.flatMap(({ scope, state }) => factsOf(scope, state, until)),
        notes: shown.rows.map(({ src, name, description, content }) => ({ src, name, description, content })),
        changes: shown.changes.slice(0, MAX_CHANGES).map(({ id, at, action, actor, undoneBy, rows: changed }) => ({
          id,
          at,
          action,
          actor,
          isUndone: undoneBy !== undefined,
          names: changed.map(({ before, after }) => (after ?? before)?.name ?? ""),
        })),
        moments: momentsOf(
          journals.map(({ state }) => state),
          changes,
        ),
      };
    } finally {
      await board.close();
    }
  }

  async accept(cwd: string, id: string): Promise<void> {
    await this.#journalOf(cwd, id).transact({ action: "accept", by: "person" }, (state) => acceptChange(state, [id]));
  }

  async remove(cwd: string, id: string): Promise<void> {
    await this.#journalOf(cwd, id).transact({ action: "remove", by: "person" }, (state) => retractChange(state, [id]));
  }

  /** Undoes a change of the board, for example a consolidation. */
  async restoreBoard(cwd: string, change: number): Promise<void> {
    const board = this.#board(cwd);
    try {
      await board.board.restore({ actor: "person" }, change);
    } finally {
      await board.close();
    }
  }

  #journalOf(cwd: string, id: string): MemoryJournal {
    const found = this.#journals(cwd).find((journal) => journal.read().facts.has(id));
    if (!found) throw new TroupeError("usage", `There is no fact ${id}.`);
    return found;
  }

  #journals(cwd: string): readonly MemoryJournal[] {
    const { home, environment, disk, stamp } = this.#parts;
    const ports = { disk, stamp, redactor: createRedactor({ values: secretValuesOf(environment) }) };
    return openLocalMemory({ stateRoot: home, cwd, isTrusted: true, ports }).journals;
  }

  #board(cwd: string) {
    return openBoardAdministration({ cwd, environment: this.#parts.environment, onNotice: () => undefined });
  }
}

function factsOf(scope: string, now: MemoryState, until: string | undefined): KnowledgeView["facts"] {
  const state = until === undefined ? now : factsAt(now, until);
  return [...state.facts.values()].map((fact) => ({
    id: fact.id,
    scope,
    status: fact.status,
    subject: fact.subject,
    fact: fact.fact,
    citations: fact.citations,
    reason: fact.reason,
    author: fact.author,
    // The journal adds old uses up: their number at an earlier moment is not known.
    uses: until === undefined ? fact.uses : undefined,
    source: [fact.source.kind, fact.source.detail].filter(Boolean).join(" "),
    votes: `+${fact.votes.up} −${fact.votes.down}`,
    history: historyOf(fact.id, state).map(({ at, action, by }) => ({ at, action, by: String(by) })),
  }));
}
