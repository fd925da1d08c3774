/** Numbers and times as the page shows them. */

export function money(usd: number | undefined, isKnown = true): string {
  if (usd === undefined || (usd === 0 && !isKnown)) return "–";
  const text = usd === 0 ? "$0" : usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
  return isKnown ? text : `≥ ${text}`;
}

/** To the hundredth of a cent, for tables whose sums must agree. */
export const exactMoney = (usd: number): string => `$${usd.toFixed(4)}`;

export function tokens(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} m`;
}

/** The time of day; with `digits` of a second where moments are close to each other. */
export function clock(at: number, digits = 0): string {
  const part =
    digits === 0
      ? ""
      : `.${String(at % 1_000)
          .padStart(3, "0")
          .slice(0, digits)}`;
  return new Date(at)
    .toLocaleTimeString(undefined, {
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hour12: false,
    })
    .concat(part);
}

export function age(at: number, now: number): string {
  const minutes = Math.floor((now - at) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  if (minutes < 14 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d ago`;
  return new Date(at).toLocaleDateString();
}

export const plural = (number: number, noun: string): string => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export const count = (value: number): string => value.toLocaleString("en-US");

/** The last two parts of a path. */
export function shortPath(path: string): string {
  const parts = path.split(/[\\/]/).filter(Boolean);
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
}
