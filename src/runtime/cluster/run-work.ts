/** Runs the work that the engine hands to this worker, and decides what happens after an error. */

import { isClaimed } from "../../engine/dbos-engine.ts";
import type { Engine, RunActivation } from "../../engine/engine.ts";
import { ClaimLost } from "../../engine/engine.ts";
import type { SharedBudgets } from "../../engine/shared-budgets.ts";
import { deferred } from "../../lib/deferred.ts";
import { isOutage } from "../../lib/queries.ts";
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Session } from "../../session/session.ts";
import type { Database } from "../../store/postgres/database.ts";
import { isTakenOver } from "../../store/postgres/writer.ts";
import type { Store } from "../../store/store.ts";
import type { Runtime } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import { type ActivationParts, activate, endWork, isSuspect } from "./activation.ts";
import { remoteAgents } from "./agents/agents-elsewhere.ts";
import { childRequest } from "./agents/child-session.ts";
import { usageSince } from "./agents/child-usage.ts";
import { type CheckoutOptions, checkOut, lastKept } from "./checkout.ts";
import type { Claims, SessionClaim } from "./claims.ts";
import type { LeaseGuard } from "./lease-guard.ts";
import { tenantBudget } from "./tenant-budget.ts";
import { Turnstile } from "./turnstile.ts";
import { findWork, recordHandOver, type WorkRow } from "./work.ts";
import { type KeptWorkspace, WorkspaceKeeper } from "./workspace-keeper.ts";

export type Submit = ActivationParts["submit"];

/** Separates the id of work from the reason of a further activation, in ids of the engine. */
export const ACTIVATION_SEPARATOR = "~";

/** Returns the work of an activation of the engine. */
export const workIdOf = (activationId: string): string => activationId.split(ACTIVATION_SEPARATOR)[0] ?? activationId;

export interface WorkRunnerParts {
  readonly database: Database;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly budgets: SharedBudgets;
  readonly guard: LeaseGuard;
  readonly workerId: string;
  readonly claims: Claims;
  readonly checkout: CheckoutOptions;
  /** Serves only this tenant. */
  readonly tenant: string | undefined;
  /** Time without an answer after which a session that waits for a person is parked. */
  readonly parkMs: number;
  /** True: people may allow calls that no rule decides. */
  readonly asks: boolean;
  readonly submit: Submit;
  engine(): Engine;
  request(work: WorkRow, cwd: string): SessionRequest;
  report(line: string): void;
}

/** Work that fails this often on one worker, without an outage of the database, fails for good. */
const MAX_FAILURES = 10;

export function workRunner(parts: WorkRunnerParts): RunActivation {
  const { database, claims, tenant, report } = parts;
  const turnstile = new Turnstile();
  const failures = new Map<string, number>();
  return async (work, claim) => {
    if (claims.isStopping) throw new ClaimLost(work);
    const row = await findWork(database, workIdOf(work.id));
    if (!row) return report(`job ${work.id} has no row and is dropped`);
    if (tenant !== undefined && row.tenant !== tenant) {
      const message = `This worker serves only tenant ${tenant}.`;
      return endWork(row, { kind: "failed", message }, { ...parts, claim });
    }
    const { sessionId } = work;
    const own: SessionClaim = { ...claim, sessionId, tenant: row.tenant };
    const isAlone = isSuspect(row, parts.workerId);
    const run = async (replaced: AbortSignal) => {
      const again = row.starts > 0 ? ` again (start ${row.starts + 1}${isAlone ? ", alone" : ""})` : "";
      report(`${sessionId}: started${again}`);
      return activate(row, { ...activationParts(parts, own), replaced });
    };
    const activation = (replaced: AbortSignal) =>
      isAlone ? turnstile.alone(() => run(replaced)) : turnstile.together(() => run(replaced));
    try {
      const outcome = await claims.hold(own, { activation, isValid: () => isClaimed(database, claim) });
      failures.delete(row.id);
      report(`${sessionId}: ${describeOutcome(outcome)}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      report(`${sessionId}: ${claims.isStopping ? "left to another worker" : message}`);
      if (claims.isStopping) {
        await recordHandOver(database, row.id, claim).catch(() => undefined);
        throw new ClaimLost(work);
      }
      if (error instanceof TroupeError && error.kind === "interrupted") throw new ClaimLost(work);
      // An outage has no known length, and the loss of the session says nothing about the work.
      if (isOutage(error) || isTakenOver(error)) throw error;
      const isPassing = !(error instanceof TroupeError) || error.kind === "storage";
      const failed = (failures.get(row.id) ?? 0) + 1;
      failures.set(row.id, failed);
      if (isPassing && failed < MAX_FAILURES) throw error;
      failures.delete(row.id);
      // Repeating it would not help, and would hold a slot of the worker for ever.
      await endWork(row, { kind: "failed", message }, { ...parts, claim });
    }
  };
}

function describeOutcome(outcome: Awaited<ReturnType<typeof activate>>): string {
  if (outcome === "waiting") return "waits for a response";
  return "message" in outcome ? `${outcome.kind}: ${outcome.message}` : outcome.kind;
}

function activationParts(parts: WorkRunnerParts, claim: SessionClaim): Omit<ActivationParts, "replaced"> {
  const effects = parts.guard.of(claim);
  const { database, runtime, store, workerId: worker, budgets, checkout, parkMs, asks, submit } = parts;
  return {
    ...{ database, runtime, store, worker, claim, parkMs, submit },
    isStopping: () => parts.claims.isStopping,
    pause: effects.pause,
    kinds: ({ request }) => (request.asks ?? []).filter((kind) => asks || kind !== "permission"),
    prepare: async (work) => {
      const kept = await lastKept(database, work.sessionId);
      const { workTree, isRepository, isMoved } = await checkOut(work, kept, checkout);
      let keeper: WorkspaceKeeper | undefined;
      const opened = deferred<WorkspaceKeeper | undefined>();
      const own = await requestFor(work, workTree, parts);
      const elsewhere = remoteAgents({
        ...{ work, database, effects },
        submit: (child) => parts.engine().submit(child),
        submitAgain: parts.submit,
        keeper: opened.promise,
      });
      const request: SessionRequest = {
        ...own,
        agents: { ...own.agents, elsewhere },
        effects: { ...effects, beforeDestructiveCommand: async () => keeper?.keepIfPossible() },
        limits: { ...own.limits, sharedBudget: tenantBudget(budgets, work.tenant) },
        trace: work.request.trace,
      };
      const keeperOf = (session: Session): WorkspaceKeeper | undefined => {
        if (!isRepository) {
          opened.resolve(undefined);
          return undefined;
        }
        const { sessionId } = work;
        const store = (next: KeptWorkspace) => session.record.emit("troupe.workspace_kept", next);
        keeper = new WorkspaceKeeper({
          workTree,
          sessionId,
          kept,
          effects,
          disk: checkout.disk,
          store,
          report: parts.report,
        });
        opened.resolve(keeper);
        return keeper;
      };
      return { request, keeperOf, ...(isMoved && kept && { notice: movedNotice(kept) }) };
    },
  };
}

async function requestFor(work: WorkRow, cwd: string, parts: WorkRunnerParts): Promise<SessionRequest> {
  const own = parts.request(work, cwd);
  const { child } = work.request;
  if (!child) return own;
  const { usage } = await usageSince(parts.database, work.sessionId, child.since);
  return childRequest(own, child, usage);
}

/** Tells the model what it does not find on this machine. */
function movedNotice({ leftBehind, leftBehindCount }: KeptWorkspace): string {
  const more = leftBehindCount - leftBehind.length;
  const list =
    leftBehind.map((path) => `- ${quoted(sanitiseLine(path))}`).join("\n") + (more > 0 ? `\n- and ${more} more` : "");
  const absent =
    leftBehindCount === 0
      ? "Running commands and files outside of the working folder did not travel."
      : `These did not travel, nor did running commands and files outside of the working folder:\n${list}\nRecreate what you need, for example by installing dependencies.`;
  return wrapInTag(
    "system_notification",
    {},
    `The session continues on another machine. Its working folder was restored as it was last stored. ${absent}`,
  );
}
