/** The cost of model calls. Prices are list prices in US dollars per million tokens. Unknown values are `null`. */
import type { Usage } from "./provider.ts";

export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input read from the provider's cache. If absent, a call that used the cache has no known cost. */
  readonly cacheRead?: number;
  /** Input written to the cache. If absent, it costs the same as input. */
  readonly cacheWrite?: number;
  /** Dollars per thousand web searches by the provider. If absent, a call with a search has no known cost. */
  readonly webSearch?: number;
  /** These prices apply to calls with at most this many input tokens … */
  readonly upToInputTokens?: number;
  /** … and these to larger ones; unknown if absent. */
  readonly beyond?: Price;
}

export const free: Price = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, webSearch: 0 };

/** Returns the dollars for one call, exact to a billionth. Returns `null` if any part has no known price. */
export function costOf(usage: Usage, price: Price | null | undefined): number | null {
  if (price === null || price === undefined) return null;
  if (price.upToInputTokens !== undefined && usage.inputTokens > price.upToInputTokens) {
    return costOf(usage, price.beyond);
  }
  if (usage.cacheReadTokens > 0 && price.cacheRead === undefined) return null;
  const { webSearches = 0 } = usage;
  if (webSearches > 0 && price.webSearch === undefined) return null;
  const fresh = Math.max(0, usage.inputTokens - usage.cacheReadTokens - usage.cacheWriteTokens);
  const nanodollars =
    nano(fresh, price.input) +
    nano(usage.cacheReadTokens, price.cacheRead ?? 0) +
    nano(usage.cacheWriteTokens, price.cacheWrite ?? price.input) +
    nano(usage.outputTokens, price.output) +
    nano(webSearches * 1_000, price.webSearch ?? 0);
  return Number(nanodollars) / 1e9;
}

/** Adds costs without drift: each is a whole number of billionths. */
export function addCosts(costs: Iterable<number | null>): number | null {
  let nanodollars = 0n;
  for (const cost of costs) {
    if (cost === null) return null;
    nanodollars += BigInt(Math.round(cost * 1e9));
  }
  return Number(nanodollars) / 1e9;
}

/**
 * Uses integers because 0.1 + 0.2 is not 0.3. A price has at most six decimals. The rest of a billionth is rounded half
 * up.
 */
function nano(tokens: number, dollarsPerMillion: number): bigint {
  const microdollarsPerMillion = BigInt(Math.round(dollarsPerMillion * 1e6));
  return (BigInt(Math.round(tokens)) * microdollarsPerMillion * 1_000n + 500_000n) / 1_000_000n;
}
