import { exitCodes } from "./exit-codes.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The first signal asks to stop cleanly; the second one does not ask. Returns how to undo it. */
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
