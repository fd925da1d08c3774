import { describe, expect, it } from "vitest";
import { Limiter, type Pass } from "../../src/model/limiter.ts";
import type { ModelEvent } from "../../src/model/provider.ts";
import { withRetry } from "../../src/model/retry.ts";
import { collect, done, failing, modelError, request, type Scripted, scripted } from "./scripted.ts";
import { type VirtualClock, virtualClock } from "./virtual-clock.ts";

const live = new AbortController().signal;

/** `count` agents, one call each, all at once and all through one limiter. */
async function crowd(options: {
  stamp: VirtualClock;
  provider: Scripted;
  count: number;
  limiter?: Limiter;
}): Promise<ModelEvent[][]> {
  const { stamp, provider, count, limiter = new Limiter({ stamp }) } = options;
  const patient = withRetry(provider, { stamp, limiter, random: () => 0.5 });
  return stamp.during(
    Promise.all(Array.from({ length: count }, () => collect(patient.stream(request, new AbortController().signal)))),
  );
}

function stops(replies: readonly ModelEvent[][]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reply of replies) {
    const end = reply.at(-1);
    const stop = end?.type === "end" ? end.stop : "none";
    counts[stop] = (counts[stop] ?? 0) + 1;
  }
  return counts;
}

/** The most requests that any window of 100 ms saw, from `from` on. */
function busiestSlot(starts: readonly number[], from: number): number {
  const later = starts.filter((start) => start >= from);
  return Math.max(0, ...later.map((start) => later.filter((other) => other >= start && other < start + 100).length));
}

describe("a rate limit that hits a hundred agents at once", () => {
  it("a rate limit parks all callers, sends one probe per window, and then lets five through per 100 ms", async () => {
    const stamp = virtualClock();
    const opensAt = stamp.monotonic() + 45_000;
    const provider = scripted(
      stamp,
      (_n, now) => (now < opensAt ? failing(modelError("rate_limit", { retryAfterMs: 20_000 })) : done),
      30,
    );
    const replies = await crowd({ stamp, provider, count: 100 });

    expect(stops(replies)).toEqual({ done: 100 });
    const burst = provider.starts.filter((start) => start === 1_000_000).length;
    const probes = provider.starts.filter((start) => start > 1_000_000 && start < opensAt);
    expect({ burst, probes: probes.length }).toEqual({ burst: 100, probes: 2 });
    expect(busiestSlot(provider.starts, 1_000_001)).toBe(5);
    const lastStart = Math.max(...provider.starts);
    expect(lastStart - opensAt).toBeLessThan(20_000 + 2_000 + 1_000);
  });

  it("a rate limit lets no new request through while the gate is shut, and shows each its wait", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp });
    const provider = scripted(stamp, (n) =>
      n === 1 ? failing(modelError("rate_limit", { retryAfterMs: 10_000 })) : done,
    );
    const patient = withRetry(provider, { stamp, limiter, random: () => 0 });
    const first = collect(patient.stream(request, live));
    const late = stamp.sleep(4_000).then(() => collect(patient.stream(request, live)));
    const [, events] = await stamp.during(Promise.all([first, late]));
    expect(provider.starts.map((start) => start - 1_000_000)).toEqual([0, 10_000, 10_000]);
    expect(events[0]).toEqual({ type: "held", reason: "rate_limit", waiting: 1, delayMs: 6_000 });
  });

  it("a rate limit gives the slot of a caller that stops reading to the next one", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp, maxConcurrency: 1 });
    const first = limiter.join();
    const pass = await first.enter(live);
    const patient = withRetry(
      scripted(stamp, () => done),
      { stamp, limiter },
    );
    for await (const event of patient.stream(request, live)) {
      expect(event).toEqual({ type: "held", reason: "concurrency", waiting: 1 });
      break;
    }
    pass.release();
    expect((await collect(patient.stream(request, live))).at(-1)).toMatchObject({ type: "end", stop: "done" });
  });

  it("a rate limit of an hour refuses callers at once instead of waiting", async () => {
    const stamp = virtualClock();
    const provider = scripted(stamp, () => failing(modelError("rate_limit", { retryAfterMs: 3_600_000 })));
    const limiter = new Limiter({ stamp });
    await crowd({ stamp, provider, count: 1, limiter });
    const [reply] = await crowd({ stamp, provider, count: 1, limiter });
    expect(provider.starts).toHaveLength(1);
    expect(reply).toMatchObject([
      {
        type: "end",
        stop: "error",
        error: { kind: "rate_limit", retryAfterMs: 3_600_000, hint: expect.stringContaining("3600 seconds") },
      },
    ]);
  });

  it("a rate limit ends for all callers within the limit when it stays in force", async () => {
    const stamp = virtualClock();
    const provider = scripted(stamp, () => failing(modelError("rate_limit", { retryAfterMs: 30_000 })), 10);
    const replies = await crowd({ stamp, provider, count: 20 });
    expect(stops(replies)).toEqual({ error: 20 });
    expect(stamp.monotonic() - 1_000_000).toBeLessThan(8 * 60_000);
  });

  it("a rate limit lets the next caller through when the probe's caller gives up", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp });
    const opening = limiter.join();
    const pass = await opening.enter(live);
    pass.failed(modelError("rate_limit"), 1_000);
    pass.release();
    const [probe, next] = [limiter.join(), limiter.join()];
    const probing = stamp.during(probe.enter(live));
    const waiting = next.enter(live);
    const leave = await probing;
    leave.release();
    await expect(waiting).resolves.toBeDefined();
  });
});

describe("an outage", () => {
  it("an outage blocks the gate after five failures in a row; then one probe in 30 s decides for all", async () => {
    const stamp = virtualClock();
    const opensAt = stamp.monotonic() + 40_000;
    const provider = scripted(stamp, (_n, now) => (now < opensAt ? failing(modelError("network")) : done), 5);
    const replies = await crowd({ stamp, provider, count: 100 });
    expect(stops(replies)).toEqual({ done: 100 });
    const after = provider.starts.map((start) => start - 1_000_000);
    expect(after.filter((start) => start === 0)).toHaveLength(100);
    expect(after.filter((start) => start > 0 && start < 40_000)).toEqual([30_005]);
    // Recovery takes no longer than one probe interval.
    expect(Math.min(...after.filter((start) => start >= 40_000))).toBeLessThanOrEqual(40_000 + 30_005);
  });

  it("an outage does not delay a single caller: its own back-off is enough", async () => {
    const stamp = virtualClock();
    const provider = scripted(stamp, () => failing(modelError("network")));
    const limiter = new Limiter({ stamp });
    for (let prompt = 0; prompt < 3; prompt++) await crowd({ stamp, provider, count: 1, limiter });
    expect(provider.starts).toHaveLength(18);
    expect(stamp.monotonic() - 1_000_000).toBe(3 * (100 + 200 + 400 + 800 + 1_600));
  });

  it("successes between failures prevent the assumption of an outage", async () => {
    const stamp = virtualClock();
    const provider = scripted(stamp, (n) => (n % 2 === 1 ? failing(modelError("server")) : done), 1);
    const limiter = new Limiter({ stamp });
    const idle = limiter.join();
    for (let prompt = 0; prompt < 10; prompt++) await crowd({ stamp, provider, count: 1, limiter });
    idle.leave();
    expect(stamp.monotonic() - 1_000_000).toBe(10 * (100 + 2));
  });

  it("an outage that never ends fails for all callers within the limit, with the cause", async () => {
    const stamp = virtualClock();
    const provider = scripted(stamp, () => failing(modelError("network")), 5);
    const replies = await crowd({ stamp, provider, count: 20 });
    expect(stops(replies)).toEqual({ error: 20 });
    expect(stamp.monotonic() - 1_000_000).toBeLessThan(8 * 60_000);
    expect(replies.at(-1)?.at(-1)).toMatchObject({ error: { message: expect.stringContaining("acme: network") } });
  });
});

describe("the queue of the limiter", () => {
  it("the limiter's queue is first come, first served, even for a call that returns for a retry", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp, maxConcurrency: 1 });
    const [first, second, third] = [limiter.join(), limiter.join(), limiter.join()];
    const order: string[] = [];
    const held = await first.enter(live);
    const enter = async (name: string, seat: typeof first): Promise<void> => {
      const pass = await seat.enter(live);
      order.push(name);
      pass.release();
    };
    const waits = [enter("third", third), enter("second", second), enter("first again", first)];
    held.release();
    await Promise.all(waits);
    expect(order).toEqual(["first again", "second", "third"]);
  });

  it("the limiter's queue starts low-priority requests only when no others wait, in their own order", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp, maxConcurrency: 1 });
    const first = await limiter.join().enter(live);
    const order: string[] = [];
    const wait = (name: string, priority?: "low"): void =>
      void limiter
        .join(priority)
        .enter(live)
        .then((pass) => {
          order.push(name);
          pass.release();
        });
    wait("beside 1", "low");
    wait("main 1");
    wait("beside 2", "low");
    wait("main 2");
    first.release();
    await stamp.during(stamp.sleep(1));
    expect(order).toEqual(["main 1", "main 2", "beside 1", "beside 2"]);
  });

  it("the limiter's queue removes an aborted waiter at once, and only that one", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp, maxConcurrency: 1 });
    const stop = new AbortController();
    const held = await limiter.join().enter(live);
    const aborted = limiter.join().enter(stop.signal);
    const patient = limiter.join().enter(live);
    stop.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    held.release();
    await expect(patient).resolves.toBeDefined();
  });

  it("the limiter never runs more than allowed, half after a rate limit, and one more with each success", async () => {
    const stamp = virtualClock();
    const limiter = new Limiter({ stamp, maxConcurrency: 8 });
    let running = 0;
    const take = async (): Promise<{ pass: Pass; end: () => void }> => {
      const pass = await limiter.join().enter(new AbortController().signal);
      running++;
      return {
        pass,
        end: () => {
          running--;
          pass.release();
        },
      };
    };
    const calls = Array.from({ length: 30 }, take);
    await stamp.during(stamp.sleep(1));
    expect(running).toBe(8);

    const [limited, ...others] = await Promise.all(calls.slice(0, 8));
    limited?.pass.failed(modelError("rate_limit"), 1_000);
    for (const other of [limited, ...others]) other?.end();
    await stamp.during(stamp.sleep(900));
    expect(running).toBe(0);
    await stamp.during(stamp.sleep(200));
    expect(running).toBe(1);

    const probe = await calls[8];
    probe?.pass.accepted();
    await stamp.during(stamp.sleep(1_000));
    expect(running).toBe(5);
  });
});

it("fifty agents all finish despite rate limits and broken connections", async () => {
  const stamp = virtualClock();
  let state = 7;
  const chance = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  let limited = 0;
  const provider = scripted(
    stamp,
    () => {
      if (chance() < 0.2) return failing(modelError("network"));
      if (chance() < 0.1 && limited++ < 10) return failing(modelError("rate_limit", { retryAfterMs: 2_000 }));
      return done;
    },
    40,
  );
  expect(stops(await crowd({ stamp, provider, count: 50 }))).toEqual({ done: 50 });
});
