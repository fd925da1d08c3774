/** Reads the usage of a session from its log: its own model calls, and those of its agents on other workers. */

import type { Queries } from "../../../lib/queries.ts";
import type { EventData } from "../../../protocol/event.ts";
import { decodeLine } from "../../../store/log/line.ts";

type ChildUsage = Pick<EventData<"troupe.task_returned">, "usage" | "seq">;

/** Counts the lines after `since`. */
export async function usageSince(queries: Queries, sessionId: string, since: number): Promise<ChildUsage> {
  const { rows } = await queries.query<{ seq: number; line: string }>(
    `select seq::float8 as seq, line from troupe.event where session_id = $1 and seq > $2
       and (line like '%"type":"troupe.usage"%' or line like '%"type":"troupe.task_returned"%') order by seq`,
    [sessionId, since],
  );
  const total = { calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const sum = { ...total, reasoningTokens: 0, costUsd: 0 as number | null };
  for (const { line } of rows) {
    const used = usageIn(line);
    if (!used) continue;
    for (const key of [...(Object.keys(total) as (keyof typeof total)[]), "reasoningTokens" as const])
      sum[key] += used[key];
    sum.costUsd = sum.costUsd === null || used.costUsd === null ? null : sum.costUsd + used.costUsd;
  }
  return { usage: sum, seq: rows.at(-1)?.seq ?? since };
}

function usageIn(line: string): ChildUsage["usage"] | undefined {
  const decoded = decodeLine(Buffer.from(line));
  if (decoded.kind === "bad") return undefined;
  const { event } = decoded;
  if (event.type === "troupe.usage") return { ...event.data, calls: event.data.calls ?? 1 };
  return event.type === "troupe.task_returned" ? event.data.usage : undefined;
}
