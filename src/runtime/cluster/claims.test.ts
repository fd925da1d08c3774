import { expect, it } from "vitest";
import { deferred } from "../../lib/deferred.ts";
import { Claims } from "./claims.ts";

const claim = (workId: string, sessionId = "s") => ({ workId, sessionId, tenant: "t", condition: "true", values: [] });
const isValid = async (): Promise<boolean> => true;

it("an activation that got its session again waits until the previous one has ended", async () => {
  const claims = new Claims();
  const gate = deferred<void>();
  const found: (string | undefined)[] = [];
  const activation = async (replaced: AbortSignal): Promise<void> => {
    found.push(claims.of("s")?.workId, claims.of("other")?.workId);
    if (found.length > 2) return;
    replaced.addEventListener("abort", () => gate.resolve());
    await gate.promise;
    found.push(claims.of("s")?.workId);
  };
  const earlier = claims.hold(claim("earlier"), { activation, isValid });
  await claims.hold(claim("later"), { activation, isValid });
  await earlier;
  expect(found).toEqual(["earlier", undefined, "earlier", "later", undefined]);
  expect([claims.count, claims.of("s")]).toEqual([0, undefined]);
});

it("an activation that has lost its session does not end the current one", async () => {
  const claims = new Claims();
  const gate = deferred<void>();
  const running = claims.hold(claim("valid"), {
    activation: async (replaced) => {
      await gate.promise;
      return replaced.aborted;
    },
    isValid,
  });
  const lost = claims.hold(claim("lost"), { activation: async () => "ran", isValid: async () => false });
  await expect(lost).rejects.toThrow("was given to another worker");
  gate.resolve();
  expect(await running).toBe(false);
});
