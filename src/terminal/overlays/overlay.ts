/** Overlays on the alternate screen. Each draws all rows for a size and handles keys; `less` is the model. */
import { clipRow } from "../screen/width.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Overlay {
  rows(size: Size): readonly string[];
  /** Returns "close" when the overlay is done. */
  key(key: { readonly id: string | undefined; readonly data: string }): "close" | undefined;
  /** The overlay is no longer shown. */
  closed?(): void;
}

/** A window of lines: title on top, keys at the bottom. */
export function overlayRows(
  { columns, rows }: Size,
  parts: { readonly title: string; readonly body: readonly string[]; readonly footer: readonly string[] },
): string[] {
  const width = Math.max(1, columns - 1);
  const room = Math.max(0, rows - 1 - parts.footer.length);
  const body = Array.from({ length: room }, (_, row) => clipRow(parts.body[row] ?? "", width));
  return [clipRow(parts.title, width), ...body, ...parts.footer.map((row) => clipRow(row, width))];
}

/** The first of `room` items so that the selected one is visible. */
export function scrollTo(selected: number, top: number, room: number): number {
  if (selected < top) return selected;
  return selected >= top + room ? selected - room + 1 : top;
}

/** The single printable character of a key, if it is one. */
export function printable({
  data,
  id,
}: {
  readonly id: string | undefined;
  readonly data: string;
}): string | undefined {
  if (id === "space") return " ";
  return [...data].length === 1 && data >= " " && data !== "\u007f" ? data : undefined;
}
