/**
 * The internals of DBOS that the engine uses, because its public interface has none for them. They are checked before a
 * worker starts: an update of the package that changes them would otherwise break takeovers without a word.
 */
import { TroupeError } from "../protocol/errors.ts";

export const DBOS_VERSION = "5.3.0";

interface DbosInternals {
  readonly currentOwnerXid: typeof import("@dbos-inc/dbos-sdk/internal/context").currentOwnerXid;
  readonly DBOSExecutor: typeof import("@dbos-inc/dbos-sdk/internal/dbos-executor").DBOSExecutor;
  readonly wfQueueRunner: typeof import("@dbos-inc/dbos-sdk/internal/wfqueue").wfQueueRunner;
}

const importAll = async (): Promise<DbosInternals> => ({
  ...(await import("@dbos-inc/dbos-sdk/internal/context")),
  ...(await import("@dbos-inc/dbos-sdk/internal/dbos-executor")),
  ...(await import("@dbos-inc/dbos-sdk/internal/wfqueue")),
});

/** Loads the internals. Throws a `TroupeError` that names the first one that is missing. */
export async function dbosInternals(load: () => Promise<object> = importAll): Promise<DbosInternals> {
  const found = await load().catch((cause: unknown) => {
    throw unusable("its internal modules", cause);
  });
  const internals = found as Partial<DbosInternals>;
  const needed = {
    currentOwnerXid: internals.currentOwnerXid,
    "DBOSExecutor.recoverPendingWorkflows": internals.DBOSExecutor?.prototype?.recoverPendingWorkflows,
    "DBOSExecutor.deactivateEventReceivers": internals.DBOSExecutor?.prototype?.deactivateEventReceivers,
    "wfQueueRunner.dispatchLoop": internals.wfQueueRunner?.dispatchLoop,
  };
  const missing = Object.entries(needed).find(([, value]) => typeof value !== "function");
  if (missing) throw unusable(missing[0]);
  return found as DbosInternals;
}

function unusable(missing: string, cause?: unknown): TroupeError {
  return new TroupeError("usage", `This version of @dbos-inc/dbos-sdk cannot be used: it lacks ${missing}.`, {
    hint: `Install the tested version where troupe is installed: npm install @dbos-inc/dbos-sdk@${DBOS_VERSION}`,
    cause,
  });
}
