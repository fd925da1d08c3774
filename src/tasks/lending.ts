import type { RunningTasks } from "./running-tasks.ts";
import type { Slots } from "./slots.ts";

/** An agent that waits for another lends it its place, and shows whom it waits for. Returns how to end that. */
export function lendPlace(
  waiter: string | undefined,
  awaited: string,
  { lives, slots }: { readonly lives: RunningTasks; readonly slots: Slots },
): () => void {
  const live = waiter === undefined ? undefined : lives.get(waiter);
  if (waiter === undefined || !live) return () => undefined;
  const what = `agent ${awaited}`;
  live.waitingFor = what;
  const takeBack = slots.lend(waiter, awaited);
  return () => {
    if (live.waitingFor === what) live.waitingFor = undefined;
    takeBack();
  };
}
