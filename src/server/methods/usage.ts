/** What a session has used so far. */
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

export const usageMethods: MethodTable = {
  "session.usage.getMetrics": sessionMethod(nothing, (_, { session }) => {
    const { budget, events } = session;
    const models = [...budget.perModel].map(([name, { calls, usage, costUsd }]) => [
      name,
      { requests: { count: calls, cost: costUsd ?? 0 }, usage },
    ]);
    const { usage, durationMs } = budget.session;
    return {
      totalPremiumRequestCost: 0,
      totalUserRequests: events.filter(({ type, agentId }) => type === "user.message" && agentId === undefined).length,
      tokenDetails: {
        input: { tokenCount: usage.inputTokens },
        output: { tokenCount: usage.outputTokens },
        cache_read: { tokenCount: usage.cacheReadTokens },
        cache_write: { tokenCount: usage.cacheWriteTokens },
      },
      totalApiDurationMs: Math.round(durationMs),
      sessionStartTime: events[0]?.timestamp ?? new Date().toISOString(),
      codeChanges: { linesAdded: 0, linesRemoved: 0, filesModifiedCount: 0, filesModified: [] },
      modelMetrics: Object.fromEntries(models),
      currentModel: session.settings.model.model,
    };
  }),
};
