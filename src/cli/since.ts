import { usage } from "./args.ts";

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses the value of `--since`, a date or a span before now, to ISO 8601. */
export function timeOf(since: string): string {
  const [, amount, unit = ""] = /^(\d{1,6})([mhdw])$/.exec(since) ?? [];
  const time = amount === undefined ? Date.parse(since) : Date.now() - Number(amount) * (UNITS[unit] ?? 0);
  if (Number.isNaN(time)) throw usage(`--since ${since}: give a date (2026-01-31) or a span (30m, 12h, 7d, 4w).`);
  return new Date(time).toISOString();
}
