/** The candidate most like `wanted`, if any is close enough to be a likely slip of the finger. */
export function nearest(wanted: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, changes and swaps of neighbours between the two; `limit` when there are as many or more. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let older: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (older[j - 2] ?? 0) + 1 : change;
      next[j] = Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
    }
    older = row;
    row = next;
  }
  return row[b.length] ?? limit;
}

/** At most `maxCharacters`, cut at a code point, with a mark that something is missing. */
export function clip(text: string, maxCharacters: number, mark = "…"): string {
  if (text.length <= maxCharacters) return text;
  return `${firstCharacters(text, Math.max(0, maxCharacters - mark.length))}${mark}`;
}

/** The first characters without splitting a surrogate pair. */
export function firstCharacters(text: string, count: number): string {
  const last = text.charCodeAt(count - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? count - 1 : count);
}

/** "1 file", "2 files". */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Makes text from outside safe to show on a terminal: escape sequences and control characters are dropped,
 * characters that hide or reorder text are made visible. New lines and tabs stay.
 */
export function sanitise(text: string): string {
  return text
    .replace(
      /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[PX^_][^\u001b]*(?:\u001b\\|$)|\[[0-?]*[ -/]*[@-~]?|[ -/]*[0-~]?)/g,
      "",
    )
    .replace(/\r\n/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
    .replace(
      /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|\udb40[\udc00-\udc7f]/g,
      (hidden) => `<U+${hidden.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}>`,
    );
}
