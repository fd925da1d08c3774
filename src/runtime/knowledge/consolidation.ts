/**
 * One consolidation of the board: the agent's prompt, its draft, and the transaction that applies the draft at the end.
 * If it ends in any other way, the board stays unchanged.
 */

import type { Board, BoardChange, ChangeBy } from "../../context/board/board.ts";
import { consolidationPrompt } from "../../context/board/consolidation.ts";
import { type BoardDraft, draftOf } from "../../context/board/draft.ts";
import type { SessionEvidence } from "../../context/board/evidence.ts";
import { boardItem, boardTable } from "../../context/board/table.ts";
import { requireText } from "../../context/board/text.ts";
import { defined } from "../../lib/defined.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { BoardPort } from "../../tools/memory/board-port.ts";

export type ConsolidationReport = EventData<"troupe.consolidation">;

export interface Consolidation {
  readonly port: BoardPort;
  /** Addition to the system prompt. */
  readonly prompt: string;
  /** Applies the draft if the agent is done, otherwise drops it. Never rejects; also emits the report as an event. */
  conclude(end: "done" | { readonly reason: string }): Promise<ConsolidationReport>;
}

interface ConsolidationParts {
  readonly board: Board;
  readonly evidence: SessionEvidence;
  readonly by: Pick<ChangeBy, "actor">;
  readonly redactor: Redactor;
  readonly stamp: Stamp;
  readonly emit: Emit;
}

/** More writes are a loop, not a consolidation. */
const MAX_WRITES = 200;

export async function beginConsolidation(parts: ConsolidationParts): Promise<Consolidation> {
  const { board, evidence, by, emit } = parts;
  const rows = await board.rows();
  const draft = draftOf(rows);
  const apply = async (): Promise<ConsolidationReport> => {
    let prunedByRule: readonly string[] = [];
    const change = await board.change({ ...by, action: "consolidate", sessionId: evidence.sessionId }, (current) => {
      const finished = draft.finish(current);
      prunedByRule = finished.prunedByRule;
      return finished.rows;
    });
    return reportOf(change, prunedByRule, evidence.sessionId);
  };
  return {
    port: draftPort(draft, parts),
    prompt: consolidationPrompt(rows, evidence),
    async conclude(end) {
      const nothing = { sessionId: evidence.sessionId, added: [], replaced: [], pruned: [], prunedByRule: [] };
      const report: ConsolidationReport =
        end === "done"
          ? await apply().catch(
              (error: unknown) => ({ ...nothing, outcome: "refused", reason: reasonOf(error) }) as const,
            )
          : { ...nothing, outcome: "dropped", reason: end.reason };
      // The board is changed even if the event cannot be written.
      await emit("troupe.consolidation", report).catch(() => undefined);
      return report;
    },
  };
}

/** Reads the draft without counting uses: a consolidation's reads say nothing about usefulness. */
function draftPort(draft: BoardDraft, { redactor, stamp }: Pick<ConsolidationParts, "redactor" | "stamp">): BoardPort {
  let writes = 0;
  const count = (): void => {
    if (++writes > MAX_WRITES) throw new TroupeError("usage", `A consolidation writes at most ${MAX_WRITES} times.`);
  };
  return {
    writes: "draft",
    async table() {
      const rows = draft.rows();
      return rows.length === 0 ? undefined : boardTable(rows);
    },
    async read(src, name) {
      const row = draft.rows().find((one) => one.src === src && one.name === name);
      return row && boardItem(row);
    },
    async add(given) {
      count();
      return draft.add(requireText(given, { redactor, secrets: "masked" }), new Date(stamp.now()).toISOString());
    },
    async prune(name) {
      count();
      return draft.prune(name);
    },
  };
}

function reportOf(
  change: BoardChange | undefined,
  prunedByRule: readonly string[],
  sessionId: string,
): ConsolidationReport {
  const rows = change?.rows ?? [];
  return {
    outcome: change ? "applied" : "unchanged",
    ...defined({ change: change?.id }),
    sessionId,
    added: rows.flatMap(({ before, after }) => (!before && after ? [after.name] : [])),
    replaced: rows.flatMap(({ before, after }) => (before && after ? [after.name] : [])),
    pruned: rows.flatMap(({ before, after }) => (before && !after ? [before.name] : [])),
    prunedByRule: [...prunedByRule],
  };
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns one or two sentences for a user or an agent. */
export function reportText(report: ConsolidationReport): string {
  const { outcome, change, reason = "", prunedByRule } = report;
  if (outcome === "unchanged") return "The board was left as it was.";
  if (outcome === "refused" || outcome === "dropped") return `The board was not changed: ${reason}`;
  const parts = (["added", "replaced", "pruned"] as const).flatMap((what) =>
    report[what].length > 0 ? [`${plural(report[what].length, "item")} ${what} (${report[what].join(", ")})`] : [],
  );
  const byRule = prunedByRule.length > 0 ? ` To make room, ${prunedByRule.join(", ")} went by rule.` : "";
  return `${parts.join(", ")}.${byRule} To take it back: troupe board restore ${change}`;
}
