import { setImmediate as later } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Collects garbage, so that a `WeakRef` to what nothing holds is empty. */
export async function collectGarbage(): Promise<void> {
  await later(); // what this task created or read from a WeakRef is held until its end
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
