import { afterAll, beforeAll, beforeEach } from "vitest";

/**
 * What the tests of a file share: opened before all of them, closed after, and opened anew before a second look at one
 * that failed, because what the first left behind must not decide the second.
 */
export function shared(open: () => PromiseLike<unknown>, close: () => PromiseLike<unknown>): void {
  beforeAll(async () => void (await open()));
  afterAll(async () => void (await close()));
  beforeEach(async ({ task }) => {
    if ((task.result?.retryCount ?? 0) === 0) return;
    await close();
    await open();
  });
}
