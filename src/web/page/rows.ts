/**
 * Rows that keys go through: an element with `data-row`. Its focus is on the element inside with `data-focus`, or on itself.
 */

/** The region that scrolls where there are no rows. */
const REGION = "main .tab, main .table";

/** Focuses the next row, or the one before; the first or last one if none has the focus. */
export function focusRow(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = here === -1 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, here + by));
  const row = rows[next] ?? document.querySelector<HTMLElement>(REGION);
  (row?.querySelector<HTMLElement>("[data-focus]") ?? row)?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

/** Finds an element in the row that has the focus. */
export function inRow(selector: string): HTMLElement | null {
  return document.activeElement?.closest("[data-row]")?.querySelector<HTMLElement>(selector) ?? null;
}
