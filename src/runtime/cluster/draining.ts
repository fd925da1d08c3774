/** Workers that finish what they have and take nothing new, until an operator takes that back. */

import type { EngineWorker } from "../../engine/engine.ts";
import type { Lease } from "../../engine/lease.ts";
import type { Database } from "../../store/postgres/database.ts";
import { changes, notifying, topics } from "../../store/postgres/notifications.ts";

/** The wish is also looked up, in case a notification is lost. */
const POLL_MS = 10_000;

interface DrainingParts {
  readonly database: Database;
  readonly workerId: string;
  readonly lease: Pick<Lease, "drain" | "undrain">;
  readonly serving: Pick<EngineWorker, "pause" | "resume">;
  report(line: string): void;
}

/** Follows the operator's wish. Returns a function that ends this. */
export function followDraining(parts: DrainingParts): () => Promise<void> {
  const stopping = new AbortController();
  const following = follow(parts, stopping.signal);
  return async () => {
    stopping.abort();
    await following;
  };
}

async function follow(
  { database, workerId, lease, serving, report }: DrainingParts,
  signal: AbortSignal,
): Promise<void> {
  let isDraining = false;
  for await (const _ of changes(database.notifications, [topics.worker(workerId)], { signal, pollMs: POLL_MS })) {
    // While the database is unreachable, nothing changes.
    const isAsked = await isDrainAsked(database, workerId).catch(() => isDraining);
    if (isAsked === isDraining || signal.aborted) continue;
    isDraining = isAsked;
    // First the row: dispatchers count the slots of workers that take work.
    await (isDraining ? lease.drain() : lease.undrain()).catch(() => undefined);
    await (isDraining ? serving.pause() : serving.resume());
    report(isDraining ? "draining: takes no new jobs" : "takes jobs again");
  }
}

async function isDrainAsked(database: Database, workerId: string): Promise<boolean> {
  const { rows } = await database.query<{ asked: boolean }>(
    "select drain_asked as asked from troupe.worker where id = $1",
    [workerId],
  );
  return rows[0]?.asked === true;
}

/** Returns the ids of the workers whose wish was changed. `name`: the id of a worker, or its beginning. */
export async function askToDrain(
  database: Database,
  wish: { readonly name?: string; readonly pool?: string; readonly isAsked: boolean },
): Promise<readonly string[]> {
  const { rows } = await database.query<{ id: string }>(
    `with asked as (
       update troupe.worker set drain_asked = $3
       where ($1::text is null or starts_with(id, $1)) and ($2::text is null or pool = $2) returning id)
     select id, ${notifying("worker", "id")} from asked order by id`,
    [wish.name ?? null, wish.pool ?? null, wish.isAsked],
  );
  return rows.map(({ id }) => id);
}
