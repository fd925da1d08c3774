import { expect, it } from "vitest";
import { deferred } from "../../lib/deferred.ts";
import { Claims } from "./claims.ts";

const claim = (workId: string, sessionId = "s") => ({ workId, sessionId, tenant: "t", condition: "true", values: [] });

it("an activation that got its session again finds its own claim, and so does the one before", async () => {
  const claims = new Claims();
  const gate = deferred<void>();
  const found: Record<string, string | undefined> = {};
  const earlier = claims.hold(claim("earlier"), async () => {
    await gate.promise;
    found.earlier = claims.of("s")?.workId;
  });
  await claims.hold(claim("later"), async () => {
    found.later = claims.of("s")?.workId;
    found.other = claims.of("other")?.workId;
    expect(claims.count).toBe(2);
  });
  gate.resolve();
  await earlier;
  expect(found).toEqual({ earlier: "earlier", later: "later", other: undefined });
  expect([claims.count, claims.of("s")]).toEqual([0, undefined]);
});
