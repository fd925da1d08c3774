import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addCosts, costOf, type Price } from "./prices.ts";
import { noUsage, type Usage } from "./provider.ts";
import { providerList } from "./providers/list.ts";

const usage = (changes: Partial<Usage>): Usage => ({ ...noUsage, ...changes });
const price: Price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

describe("the cost of a call", () => {
  it("the cost of a call prices cached tokens apart from fresh ones", () => {
    const used = usage({
      inputTokens: 1_000_000,
      cacheReadTokens: 600_000,
      cacheWriteTokens: 100_000,
      outputTokens: 10_000,
    });
    expect(costOf(used, price)).toBe(0.9 + 0.18 + 0.375 + 0.15);
  });

  it("the cost of a call does not count reasoning twice: it is part of the output", () => {
    expect(costOf(usage({ outputTokens: 1_000, reasoningTokens: 900 }), price)).toBe(0.015);
  });

  it("the cost of a call is exact where floating point is not", () => {
    expect(costOf(usage({ inputTokens: 1, outputTokens: 2 }), { input: 100_000, output: 100_000 })).toBe(0.3);
    expect(addCosts([0.1, 0.2])).toBe(0.3);
  });

  it("the cost of a call is unknown without a price, and for cached tokens without a price of their own", () => {
    expect(costOf(usage({ inputTokens: 1 }), null)).toBeNull();
    expect(costOf(usage({ inputTokens: 1 }), undefined)).toBeNull();
    expect(costOf(usage({ inputTokens: 10, cacheReadTokens: 5 }), { input: 1, output: 1 })).toBeNull();
    expect(addCosts([1, null])).toBeNull();
  });

  it("the cost of a call follows the tariff for long prompts, and is unknown where that is", () => {
    const tiered: Price = { input: 1, output: 1, upToInputTokens: 100, beyond: { input: 10, output: 10 } };
    const { beyond: _, ...open } = tiered;
    expect(costOf(usage({ inputTokens: 100 }), tiered)).toBe(0.0001);
    expect(costOf(usage({ inputTokens: 101 }), tiered)).toBe(0.00101);
    expect(costOf(usage({ inputTokens: 101 }), open)).toBeNull();
  });

  it("the cost of a call never shrinks when more is used, and the cost of many calls is the sum of theirs", () => {
    const tokens = fc.nat(3_000_000);
    fc.assert(
      fc.property(tokens, tokens, tokens, (inputTokens, outputTokens, more) => {
        const less = costOf(usage({ inputTokens, outputTokens }), price) ?? Number.NaN;
        const all = costOf(usage({ inputTokens, outputTokens: outputTokens + more }), price) ?? Number.NaN;
        expect(all).toBeGreaterThanOrEqual(less);
        expect(addCosts([less, less, less])).toBeCloseTo(3 * less, 9);
      }),
    );
  });
});

describe("the built-in providers", () => {
  it("the built-in providers have unique names, clean addresses, and a known default model", () => {
    expect(new Set(providerList.map(({ id }) => id)).size).toBe(providerList.length);
    for (const { id, baseUrl, defaultModel, models, local, keyVariables } of providerList) {
      expect(id).toMatch(/^[a-z]+$/);
      expect(baseUrl).not.toMatch(/\/$/);
      expect(models.map(({ name }) => name)).toEqual(
        defaultModel === undefined ? [] : expect.arrayContaining([defaultModel]),
      );
      if (local === undefined) expect(keyVariables).not.toEqual([]);
      else expect(new URL(baseUrl).host).toBe(`127.0.0.1:${local.port}`);
    }
  });
});
