import { describe, expect, it } from "vitest";
import { afterAbandonedProbe, afterFailure, afterSuccess, type Breaker, noFailures } from "./breaker.ts";
import { ModelError, type ModelErrorKind } from "./model-error.ts";

const limits = { failures: 5, blockedMs: 30_000 };
const error = (kind: ModelErrorKind): ModelError => new ModelError(kind, { kind, provider: "acme" });

function fail(breaker: Breaker, kind: ModelErrorKind, details: { isProbe?: boolean; now?: number } = {}): Breaker {
  return afterFailure(breaker, { error: error(kind), delayMs: 10_000, isProbe: false, now: 0, ...details }, limits);
}

function failTimes(breaker: Breaker, times: number): Breaker {
  return Array.from({ length: times }).reduce<Breaker>((before) => fail(before, "network"), breaker);
}

describe("the circuit", () => {
  it("the circuit opens with the fifth failure in a row, not with the fourth", () => {
    expect(failTimes(noFailures, 4).gate.state).toBe("passing");
    expect(failTimes(noFailures, 5)).toEqual({
      gate: { state: "blocked", reason: "outage", since: 0, until: 30_000, cause: error("network") },
      failures: 5,
    });
  });

  it("the circuit restarts its count with every success", () => {
    const once = afterSuccess(failTimes(noFailures, 4), false);
    expect(failTimes(once, 4).gate.state).toBe("passing");
    expect(failTimes(once, 5).gate.state).toBe("blocked");
  });

  it("the circuit counts an answer of any kind as a success", () => {
    expect(fail(failTimes(noFailures, 4), "request")).toEqual(noFailures);
  });

  it("the circuit is not prolonged by requests that were in progress when it opened", () => {
    const shut = failTimes(noFailures, 5);
    expect(fail(shut, "network", { now: 20_000 }).gate).toEqual(shut.gate);
  });
});

describe("a probe", () => {
  const limited = fail(noFailures, "rate_limit");
  const probing: Breaker = {
    ...limited,
    gate: { state: "probing", reason: "rate_limit", since: 0, cause: error("rate_limit") },
  };

  it("a probe decides alone about a rate limit, whatever older requests report in the meantime", () => {
    expect(fail(probing, "rate_limit", { now: 50 })).toBe(probing);
    expect(afterSuccess(probing, false).gate).toEqual(probing.gate);
    expect(afterSuccess(limited, false).gate).toEqual(limited.gate);
    expect(afterSuccess(probing, true)).toEqual(noFailures);
  });

  it("a probe that is limited shuts the gate again, counted from the first time", () => {
    expect(fail(probing, "rate_limit", { isProbe: true, now: 50 }).gate).toMatchObject({ until: 10_050, since: 0 });
  });

  it("a probe that fails for another reason is followed by another one after a pause", () => {
    expect(fail(probing, "network", { isProbe: true, now: 50 }).gate).toMatchObject({
      state: "blocked",
      reason: "rate_limit",
      until: 10_050,
    });
  });

  it("a probe frees its slot at once when its waiter gives up", () => {
    expect(afterAbandonedProbe(probing, 70).gate).toMatchObject({ state: "blocked", until: 70 });
  });
});
