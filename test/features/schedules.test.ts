import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemStamp } from "../../src/lib/stamp.ts";
import { says } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { submit } from "../../src/runtime/submit.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";

const HOUR_MS = 3_600_000;

it("scheduled prompts survive the end of the process: a missed one-shot is sent once, a recurring one continues", async () => {
  await using folder = await tempFolder();
  await using server = await modelServer({ steps: [says("hello"), says("reminded")], models: ["m"] });
  const cwd = join(folder.path, "work");
  mkdirSync(cwd);
  /** A process of its own, so much later. */
  const later = (hours: number) => {
    const now = (): number => Date.now() + hours * HOUR_MS;
    const environment = { HOME: folder.path, TROUPE_BASE_URL: server.baseUrl, TROUPE_API_KEY: "k", TROUPE_MODEL: "m" };
    return createRuntime({ environment, home: join(folder.path, "home"), stamp: { ...systemStamp, now } });
  };
  const first = later(0);
  const session = await first.createSession({ cwd });
  await session.sendAndWait({ prompt: "hi" });
  await submit(session, "/after 30s remind me of tea");
  await submit(session, "/every 5m look at the build");
  await submit(session, "/every 1h never mind");
  await submit(session, "/schedules stop 3");
  await session.close();
  await first.close();

  const second = later(2);
  const again = await second.resumeSession(session.id, { cwd });
  await expect
    .poll(() => dataOf(again.events, "user.message").map(({ content, source }) => [content, source]))
    .toEqual([
      ["hi", undefined],
      ["remind me of tea", "schedule"],
    ]);
  await again.queue.whenIdle();
  const [every, ...others] = again.workspace.services?.schedules?.()?.list() ?? [];
  expect(every).toMatchObject({ id: 2, displayPrompt: "look at the build", recurring: true });
  expect(others).toEqual([]);
  // The rounds that were missed are not made up for: the next one is within its interval.
  const wait = (every?.nextRunAt ?? 0) - (Date.now() + 2 * HOUR_MS);
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(300_000);
  await again.close();
  await second.close();

  const third = later(4);
  const last = await third.resumeSession(session.id, { cwd });
  await last.queue.whenIdle();
  expect(
    last.workspace.services
      ?.schedules?.()
      ?.list()
      .map(({ id }) => id),
  ).toEqual([2]);
  expect(dataOf(last.events, "user.message")).toHaveLength(2);
  await last.close();
  await third.close();
  server.assertSpent();
});
