/** The list of sessions costs little while nothing changes, and misses nothing then. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { Feeds } from "../../src/web/feeds.ts";
import { fileSource } from "../../src/web/log-source.ts";
import { localLocation } from "../../src/web/session-location.ts";
import { SessionListRows } from "../../src/web/session-rows.ts";

afterEach(() => void vi.useRealTimers());

it("the page polls ever more rarely while nothing changes, and soon after a session appears", async () => {
  await using folder = await tempFolder({});
  mkdirSync(folder.at("session-state"));
  let looks = 0;
  const store = {
    revisions: async () => {
      looks++;
      return [];
    },
    list: async () => [],
  } as unknown as Store;
  const nothing = { isOpen: () => false, of: () => [] } as never;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const feeds = new Feeds((sessionId) => fileSource(folder.at(sessionId), () => undefined));
  const place = localLocation({ store, home: folder.path, openSessions: nothing, signIns: nothing });
  const rows = new SessionListRows({ location: place, feeds });
  await rows.follow(() => undefined);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(looks).toBeLessThan(12);
  const before = looks;
  mkdirSync(join(folder.path, "session-state", "new"));
  // The file system reports it in real time, which is not faked here.
  for (let index = 0; index < 50; index++) await turn();
  await vi.advanceTimersByTimeAsync(200);
  expect(looks).toBe(before + 1);
  rows.close();
});
