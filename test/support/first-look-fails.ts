import { afterEach } from "vitest";

/** For `TROUPE_TWICE=1`: whatever the first look at a test says, there is a second, which has to pass. */
afterEach(({ task }) => {
  if ((task.result?.retryCount ?? 0) === 0) throw new Error("There is always a second look.");
});
