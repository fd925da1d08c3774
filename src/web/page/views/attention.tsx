/** Everything that waits for a person, over all sessions and depths. */
import type { JSX } from "preact";
import { sanitise } from "../../../lib/text.ts";
import { AttentionCard } from "../parts/attention-card.tsx";
import { addressOf } from "../route.ts";
import { attention } from "../state.ts";

export function AttentionView(): JSX.Element {
  const items = attention.value;
  return (
    <main class="page">
      <h1>Attention</h1>
      {items.length === 0 && (
        <p class="hint">Nothing waits for you. Requests of all sessions and agents appear here, the oldest first.</p>
      )}
      <div class="asks">
        {items.map(({ item, blocks, agent, row }) => (
          <AttentionCard
            key={`${row.id} ${item.id}`}
            {...{ item, blocks, agent }}
            sessionId={row.id}
            title={
              <a href={addressOf({ view: "session", id: row.id, tab: "run", agent: item.agentId ?? "" })}>
                {sanitise(row.name || row.id).split("\n")[0]}
              </a>
            }
          />
        ))}
      </div>
    </main>
  );
}
