/** Token counts and cost of one session, from its log. */
import type { EventOf, SessionEvent } from "../../protocol/event.ts";
import type { Runtime } from "../../runtime/runtime.ts";

export interface UsageTotals {
  /** Model calls. */
  readonly calls: number;
  /** Requests that were sent for them, retries included. */
  readonly requests: number;
  /** All input, cached input included. */
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** The cost of the calls whose price is known. */
  readonly costUsd: number;
  /** Calls without a known price. */
  readonly unpriced: number;
}

/** Everything that one agent spent on one day with one model. */
export interface UsageRow extends UsageTotals {
  /** The local day: 2026-01-31. */
  readonly day: string;
  readonly model: string;
  readonly agent: string;
}

export const nothing: UsageTotals = {
  calls: 0,
  requests: 0,
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  unpriced: 0,
};

const fields = Object.keys(nothing) as (keyof UsageTotals)[];

export const added = (one: UsageTotals, other: UsageTotals): UsageTotals =>
  Object.fromEntries(fields.map((name) => [name, one[name] + other[name]])) as unknown as UsageTotals;

const TYPES = new Set(["session.start", "subagent.started", "troupe.usage"]);

/** Reads a session. A rewind removes nothing from what was spent. */
export async function sessionUsage(store: Runtime["store"], sessionId: string): Promise<UsageRow[]> {
  let passes = 0;
  let fold = new UsageFold();
  await store.scan(sessionId, {
    types: TYPES,
    begin() {
      passes++;
      fold = new UsageFold();
      return (event) => fold.apply(event);
    },
  });
  if (passes === 1) return fold.rows();
  // The log has rewinds or damage: the scan leaves out what is not in view.
  const { events, removed } = await store.read(sessionId);
  const whole = new UsageFold();
  const [calls, others] = [true, false].map((isCall) =>
    [...events, ...removed].filter(({ type }) => (type === "troupe.usage") === isCall),
  );
  for (const event of [...(others ?? []), ...(calls ?? [])]) whole.apply(event);
  return whole.rows();
}

class UsageFold {
  readonly #rows = new Map<string, UsageRow>();
  readonly #names = new Map<string, string>();
  readonly #seen = new Set<string>();
  #started = "";

  apply(event: SessionEvent): void {
    if (event.type === "session.start") this.#started ||= event.data.startTime;
    if (event.type === "subagent.started" && event.agentId !== undefined)
      this.#names.set(event.agentId, event.data.agentName);
    if (event.type === "troupe.usage") this.#spend(event);
  }

  /** A fork begins with the events of another session, which counts them itself. */
  #spend({ id, timestamp, agentId, data }: EventOf<"troupe.usage">): void {
    if (timestamp < this.#started || this.#seen.has(id)) return;
    this.#seen.add(id);
    const [day, model, agent] = [dayOf(new Date(timestamp)), `${data.provider}/${data.model}`, this.#nameOf(agentId)];
    const key = JSON.stringify([day, model, agent]);
    const spent: UsageTotals = {
      calls: data.calls ?? 1,
      requests: data.attempts,
      inputTokens: data.inputTokens,
      outputTokens: data.outputTokens,
      reasoningTokens: data.reasoningTokens,
      cacheReadTokens: data.cacheReadTokens,
      cacheWriteTokens: data.cacheWriteTokens,
      costUsd: data.costUsd ?? 0,
      unpriced: data.costUsd === null ? 1 : 0,
    };
    this.#rows.set(key, { day, model, agent, ...added(this.#rows.get(key) ?? nothing, spent) });
  }

  #nameOf(agentId: string | undefined): string {
    if (agentId === undefined) return "main";
    // The run of a sidekick is named after the sidekick.
    return this.#names.get(agentId) ?? agentId.replace(/#.*$/, "");
  }

  rows(): UsageRow[] {
    return [...this.#rows.values()];
  }
}

export function dayOf(time: Date): string {
  const two = (number: number): string => String(number).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}
