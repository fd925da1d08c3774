import type { RunningTasks } from "./running-tasks.ts";
import type { Slots } from "./slots.ts";

/**
 * Lends the slot of a waiting agent to the agent it waits for, and displays the wait. Returns a function that undoes
 * both.
 */
export function lendSlot(
  waiter: string | undefined,
  awaited: string,
  { runningTasks, slots }: { readonly runningTasks: RunningTasks; readonly slots: Slots },
): () => void {
  const running = waiter === undefined ? undefined : runningTasks.get(waiter);
  if (waiter === undefined || !running) return () => undefined;
  const reason = `agent ${awaited}`;
  running.waitingFor = reason;
  const takeBack = slots.lend(waiter, awaited);
  return () => {
    if (running.waitingFor === reason) running.waitingFor = undefined;
    takeBack();
  };
}
