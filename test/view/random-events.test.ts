import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { agentRows, busyAgents, currentOutput } from "../../src/view/agent-rows.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { blockedBy, openAttention, waitChain, waitText } from "../../src/view/waits.ts";
import { recordings } from "./recorded.ts";

let known: readonly SessionEvent[] = [];
beforeAll(async () => {
  known = (await recordings()).flatMap(({ events }) => events);
});

/** Real events in a wrong order, twice, of another agent, or with gaps: what a damaged log or a slow client may bring. */
const disorder = (): fc.Arbitrary<SessionEvent[]> =>
  fc.array(
    fc
      .tuple(
        fc.nat(known.length - 1),
        fc.option(fc.constantFrom("scout", "deep", "nobody", "")),
        fc.constantFrom(undefined, "scout", "deep"),
      )
      .map(([index, agentId, parentId]): SessionEvent => {
        const event = known[index] as SessionEvent;
        const moved = agentId === null ? event : { ...event, agentId };
        if (moved.type !== "troupe.task_created" || parentId === undefined) return moved;
        return { ...moved, data: { ...moved.data, parentId } };
      }),
    { maxLength: 300 },
  );

it("a view folds events in any order without a failure, and answers every query afterwards", () => {
  fc.assert(
    fc.property(disorder(), (events) => {
      const made = new SessionView();
      for (const event of events) made.apply(event);
      const { view } = made;
      for (const agent of [view.main, ...view.agents.values()]) {
        waitText(waitChain(view, agent.id));
        currentOutput(agent);
        expect(agent.subtree.inputTokens).toBeGreaterThanOrEqual(agent.spent.inputTokens);
      }
      for (const item of openAttention(view)) blockedBy(view, item);
      const shown = agentRows(view).flatMap((row) => (row.kind === "agent" ? [row.agent.id] : []));
      expect(new Set(shown).size).toBe(shown.length);
      expect(busyAgents(view).length).toBeLessThanOrEqual(view.agents.size);
      expect(view.sequence).toBe(events.filter(({ ephemeral }) => ephemeral !== true).length);
    }),
    { numRuns: 200 },
  );
});
