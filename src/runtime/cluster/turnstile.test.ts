import { describe, expect, it } from "vitest";
import { deferred } from "../../lib/deferred.ts";
import { Turnstile } from "./turnstile.ts";

describe("a turnstile", () => {
  it("a turnstile runs work side by side, and suspects alone, in the order of arrival", async () => {
    const turnstile = new Turnstile();
    const running = new Set<string>();
    const seen: string[] = [];
    const start = (name: string, how: "together" | "alone", isFailing = false) => {
      const gate = deferred<void>();
      const end = turnstile[how](async () => {
        running.add(name);
        seen.push([...running].join("+"));
        await gate.promise;
        running.delete(name);
        if (isFailing) throw new Error(name);
      });
      end.catch(() => undefined);
      return { gate, end };
    };
    const all = {
      ...{ a: start("a", "together", true), b: start("b", "together"), suspect: start("suspect", "alone", true) },
      ...{ c: start("c", "together"), d: start("d", "together"), other: start("other", "alone") },
    };
    for (const { gate, end } of Object.values(all)) {
      gate.resolve();
      await end.catch(() => undefined);
    }
    expect(seen).toEqual(["a", "a+b", "suspect", "c", "c+d", "other"]);
  });
});
