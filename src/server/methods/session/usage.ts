/** The usage of a session so far. */

import { codeChanges } from "../../../checkpoints/code-changes.ts";
import { defined } from "../../../lib/defined.ts";
import { nanoCredits } from "../../../session/budget/credits.ts";
import { tallyOf } from "../../../session/compaction/condense.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

export const usageMethods: MethodTable = {
  "session.usage.getMetrics": sessionMethod(nothing, async (_, { session }) => {
    const { record, events } = session;
    const { budget } = record;
    const models = [...budget.perModel].map(([name, { calls, usage, costUsd }]) => [
      name,
      { requests: { count: calls, cost: costUsd ?? 0 }, usage },
    ]);
    const { usage, durationMs, costUsd: total } = budget.session;
    const totalNanoAiu = nanoCredits(total);
    const last = events.findLast((event) => event.type === "troupe.usage" && event.agentId === undefined)?.data;
    const { filesModified, ...lines } = await codeChanges(session.record.files, events);
    return {
      totalPremiumRequestCost: 0,
      totalUserRequests: tallyOf(events).userMessages,
      tokenDetails: {
        input: { tokenCount: usage.inputTokens },
        output: { tokenCount: usage.outputTokens },
        cache_read: { tokenCount: usage.cacheReadTokens },
        cache_write: { tokenCount: usage.cacheWriteTokens },
      },
      totalApiDurationMs: Math.round(durationMs),
      sessionStartTime: events[0]?.timestamp ?? new Date().toISOString(),
      ...defined({ totalNanoAiu }),
      codeChanges: { ...lines, filesModifiedCount: filesModified.length, filesModified },
      modelMetrics: Object.fromEntries(models),
      currentModel: session.mainAgent.model.model,
      lastCallInputTokens: last && "inputTokens" in last ? last.inputTokens : 0,
      lastCallOutputTokens: last && "outputTokens" in last ? last.outputTokens : 0,
    };
  }),
};
