import { exitCodes } from "./exit-codes.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Calls `stop` on the first signal. The second signal ends the process. Returns a function that removes the handler.
 */
export function onInterrupt(stop: () => void): () => void {
  let asked = false;
  const handle = (): void => {
    if (asked) process.exit(exitCodes.interrupted);
    asked = true;
    stop();
  };
  for (const signal of signals) process.on(signal, handle);
  return () => {
    for (const signal of signals) process.off(signal, handle);
  };
}
