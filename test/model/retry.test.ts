import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Limiter } from "../../src/model/limiter.ts";
import type { ModelErrorKind } from "../../src/model/model-error.ts";
import type { ModelEvent } from "../../src/model/provider.ts";
import { defaultRetryPolicy, pause, type RetryPolicy, withRetry } from "../../src/model/retry.ts";
import { collect, done, failing, modelError, request, scripted } from "./scripted.ts";
import { virtualClock } from "./virtual-clock.ts";

const live = new AbortController().signal;
const half = (): number => 0.5;

/** Runs one call against a script and returns its events and the gaps between its requests. */
async function run(
  answer: (request: number) => readonly ModelEvent[],
  random = half,
  policy: Partial<RetryPolicy> = {},
): Promise<{ events: ModelEvent[]; gaps: number[] }> {
  const stamp = virtualClock();
  const provider = scripted(stamp, answer);
  const events = await stamp.during(collect(withRetry(provider, { stamp, random, policy }).stream(request, live)));
  const gaps = provider.starts.slice(1).map((start, index) => start - (provider.starts[index] ?? 0));
  return { events, gaps };
}

describe("a failed attempt", () => {
  it("a failed attempt is repeated after a doubling pause, announced before the pause", async () => {
    const error = modelError("server", { statusCode: 500 });
    const { events, gaps } = await run((n) => (n <= 5 ? failing(error) : done));
    expect(events).toEqual([
      ...[100, 200, 400, 800, 1_600].map((delayMs, index) => ({ type: "retry", attempt: index + 1, delayMs, error })),
      ...done,
    ]);
    expect(gaps).toEqual([100, 200, 400, 800, 1_600]);
  });

  it("a failed attempt is given up after five retries, with the number of attempts and what to do", async () => {
    const { events, gaps } = await run(() => failing(modelError("server", { statusCode: 503, code: "busy" })));
    expect(gaps).toHaveLength(5);
    const end = events.at(-1);
    expect(end).toMatchObject({
      type: "end",
      stop: "error",
      error: {
        message: "acme: server (gave up after 6 attempts)",
        kind: "server",
        statusCode: 503,
        code: "busy",
        hint: "The provider has an internal problem. Try again later or choose another model.",
      },
    });
  });

  it("a failed attempt is repeated twice after a timeout, whatever other errors come between", async () => {
    const { gaps } = await run(() => failing(modelError("timeout")));
    expect(gaps).toHaveLength(2);
    const mixed = await run((n) => failing(modelError(n % 2 === 0 ? "timeout" : "server")));
    expect(mixed.gaps).toHaveLength(5);
  });

  it("a failed attempt is not repeated when the first one began 15 minutes ago", async () => {
    const error = modelError("rate_limit", { retryAfterMs: 179_000 });
    const soon = await run(() => failing(error));
    expect(soon.gaps).toHaveLength(5);
    const late = await run(() => failing(error), half, { retriesBeforeOutput: 20 });
    expect(late.gaps.reduce((sum, gap) => sum + gap, 0)).toBeLessThan(900_000 + 200_000);
    expect(late.gaps.length).toBeLessThan(8);
  });

  it.each<ModelErrorKind>(["authentication", "quota", "request", "context_length", "content_filter", "internal"])(
    "a failed attempt is final at once for the error kind %s, and the error is unchanged",
    async (kind) => {
      const error = modelError(kind, { hint: "do this" });
      const { events, gaps } = await run(() => failing(error));
      expect({ events, gaps }).toEqual({ events: [{ type: "end", stop: "error", error }], gaps: [] });
    },
  );

  it("a failed attempt is final when the provider says that a retry is pointless", async () => {
    const error = modelError("server", { retryable: false });
    expect(await run(() => failing(error))).toEqual({ events: [{ type: "end", stop: "error", error }], gaps: [] });
  });

  it("a failed attempt is not retried when its kind is final, even if the provider asks for a retry", async () => {
    const error = modelError("authentication", { retryable: true });
    expect(await run(() => failing(error))).toEqual({ events: [{ type: "end", stop: "error", error }], gaps: [] });
  });

  it.each<ModelErrorKind>(["rate_limit", "server", "network", "timeout", "protocol"])(
    "a failed attempt is retried for the error kind %s",
    async (kind) => {
      const { events } = await run((n) => (n === 1 ? failing(modelError(kind)) : done));
      expect(events.map((event) => event.type)).toEqual(["retry", "text", "end"]);
    },
  );

  it.each<ModelEvent>([
    { type: "text", delta: "half" },
    { type: "reasoning", delta: "hm" },
    { type: "call_delta", toolCallId: "c1", name: "read", delta: '{"pa' },
    { type: "call", call: { toolCallId: "c1", name: "read", arguments: {} } },
  ])("a failed attempt is retried only once after it had shown $type", async (shown) => {
    const { events, gaps } = await run(() => failing(modelError("timeout"), shown));
    expect(gaps).toHaveLength(1);
    expect(events.map((event) => event.type)).toEqual([shown.type, "retry", shown.type, "end"]);
    expect(events.at(-1)).toMatchObject({ error: { message: "acme: timeout (gave up after 2 attempts)" } });
  });

  it("a failed attempt counts as broken off when it ends without an end event", async () => {
    const { events } = await run((n) => (n === 1 ? [] : done));
    expect(events).toMatchObject([{ type: "retry", error: { kind: "protocol" } }, ...done]);
  });
});

describe("a rate limit", () => {
  it("a rate limit without a header is waited for five seconds plus a growing extra", async () => {
    const { gaps } = await run((n) => (n <= 4 ? failing(modelError("rate_limit")) : done));
    expect(gaps).toEqual([6_500, 7_500, 9_500, 13_500]);
  });

  it.each([0, 1, 1_000, 59_000, 61_000, 180_000])(
    "a rate limit is waited for as long as the provider asks (%i ms), and at most a tenth more",
    async (asked) => {
      for (const random of [() => 0, half, () => 0.999]) {
        const answer = (n: number) => (n === 1 ? failing(modelError("rate_limit", { retryAfterMs: asked })) : done);
        const { gaps, events } = await run(answer, random);
        const gap = gaps[0] ?? Number.NaN;
        expect(gap).toBeGreaterThanOrEqual(asked);
        expect(gap).toBeLessThanOrEqual(Math.max(asked * 1.1, defaultRetryPolicy.baseMs));
        expect(events[0]).toMatchObject({ type: "retry", attempt: 1, delayMs: gap });
      }
    },
  );

  it.each([
    [180_001, "asked us to wait 181 s, after 1 attempt", "2026-01-01 00:03 UTC"],
    [3_600_000, "asked us to wait 3600 s, after 1 attempt", "2026-01-01 01:00 UTC"],
    [1e12, "asked us to wait 1000000000 s, after 1 attempt", "2057-09-09 01:46 UTC"],
    [1e20, "asked us to wait 100000000000000000 s, after 1 attempt", "2100-01-01 00:00 UTC"],
  ])(
    "a rate limit is an error at once when the requested wait is %d ms, and the error says when to retry",
    async (asked, message, time) => {
      const { events, gaps } = await run(() => failing(modelError("rate_limit", { retryAfterMs: asked })));
      expect(gaps).toEqual([]);
      expect(events).toMatchObject([
        {
          type: "end",
          stop: "error",
          error: {
            message: `acme: rate_limit (${message})`,
            hint: `Try again after ${time}, or choose another model.`,
            retryAfterMs: asked,
          },
        },
      ]);
    },
  );
});

describe("the pause", () => {
  it("the retry pause has full jitter: from 0 to 0.2 s · 2ⁿ, never above 30 s", () => {
    fc.assert(
      fc.property(fc.nat(40), fc.double({ min: 0, max: 0.9999999, noNaN: true }), (retry, chance) => {
        const policy = defaultRetryPolicy;
        const milliseconds = pause({ error: modelError("network"), retry, policy, random: () => chance });
        expect(milliseconds).toBeGreaterThanOrEqual(0);
        expect(milliseconds).toBeLessThanOrEqual(Math.min(30_000, 200 * 2 ** retry));
      }),
    );
    const highest = pause({ error: modelError("network"), retry: 40, policy: defaultRetryPolicy, random: () => 1 });
    expect(highest).toBe(30_000);
  });

  it("the retry pause ends at once when the call is aborted", async () => {
    const stamp = virtualClock();
    const stop = new AbortController();
    const provider = scripted(stamp, () => failing(modelError("rate_limit", { retryAfterMs: 100_000 })));
    const reading = (async () => {
      const types: string[] = [];
      for await (const event of withRetry(provider, { stamp }).stream(request, stop.signal)) {
        types.push(event.type === "end" ? event.stop : event.type);
        if (event.type === "retry") void stamp.sleep(1_000).then(() => stop.abort());
      }
      return types;
    })();
    expect(await stamp.during(reading)).toEqual(["retry", "aborted"]);
    expect(stamp.monotonic()).toBe(1_001_000);
    expect(provider.starts).toHaveLength(1);
  });

  it("the retry pause does not depend on the wall clock", async () => {
    const stamp = virtualClock();
    const provider = scripted(stamp, (n) => {
      stamp.setWallClock(n % 2 === 0 ? 0 : 4e12);
      return n <= 3 ? failing(modelError("rate_limit", { retryAfterMs: 10_000 })) : done;
    });
    await stamp.during(collect(withRetry(provider, { stamp, random: () => 0 }).stream(request, live)));
    expect(provider.starts.map((start) => start - 1_000_000)).toEqual([0, 10_000, 20_000, 30_000]);
  });
});

it("an abandoned stream leaves the limiter empty", async () => {
  const stamp = virtualClock();
  const limiter = new Limiter({ stamp, maxConcurrency: 1 });
  const provider = withRetry(
    scripted(stamp, () => done),
    { stamp, limiter },
  );
  for (let round = 0; round < 3; round++) {
    for await (const event of provider.stream(request, live)) {
      expect(event.type).toBe("text");
      break;
    }
  }
});
