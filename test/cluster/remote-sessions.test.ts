import { expect, it } from "vitest";
import type { Cluster } from "../../src/runtime/cluster/cluster.ts";
import { RemoteSessions } from "../../src/runtime/cluster/remote-sessions.ts";

it("a request is found when its row is added during the search", async () => {
  for (const addedAt of [1, 2, 3, 4]) {
    let queries = 0;
    const row = { sessionId: "s1", id: "r1", workId: "w1", kind: "permission", data: {} };
    const database = {
      notifications: { subscribe: () => () => undefined },
      query: async () => (++queries >= addedAt ? { rows: [row], count: 1 } : { rows: [], count: 0 }),
    };
    const sessions = new RemoteSessions({ url: "", home: "/" }, { database } as unknown as Cluster);
    expect(await sessions.request("s1", "r1")).toEqual(row);
  }
});
