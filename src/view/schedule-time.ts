import type { ScheduleView } from "./view.ts";

/** When the prompt is sent next: for a recurring one the next multiple of its interval; undefined when that is unknown. */
export function nextRun({ isRecurring, intervalMs, at, createdAt }: ScheduleView, now: number): number | undefined {
  if (!isRecurring) return at ?? (intervalMs === undefined ? undefined : createdAt + intervalMs);
  if (intervalMs === undefined || intervalMs <= 0) return undefined;
  const rounds = Math.floor(Math.max(0, now - createdAt) / intervalMs) + 1;
  return createdAt + rounds * intervalMs;
}
