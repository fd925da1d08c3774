import { columnsOf } from "./columns.ts";

/** The part of a terminal stream that drawing needs. */
export interface Terminal {
  write(text: string): unknown;
  readonly columns?: number;
  readonly rows?: number;
}

/** How long changes are collected before a redraw, and the minimum time between redraws. */
const COLLECT_MS = 50;
const MIN_REDRAW_MS = 100;

/** Lines at the bottom of a terminal that are redrawn, and removed before anything else is written. */
export interface LiveLines {
  /** Redraws immediately. Writes nothing if the lines look the same. */
  change(): void;
  /** Redraws soon, together with other changes. */
  collect(): void;
  clear(): void;
  /** Stops redrawing permanently. */
  stop(): void;
}

export function screen(options: { terminal: Terminal; now: () => number; lines: () => readonly string[] }): LiveLines {
  const { terminal, now, lines } = options;
  let widths: number[] = [];
  let shown = "";
  let drawnAt = Number.NEGATIVE_INFINITY;
  let waiting: NodeJS.Timeout | undefined;
  let stopped = false;

  // A terminal that became narrower has wrapped our lines: they take more rows now.
  const erase = (): string => {
    if (widths.length === 0) return "";
    const columns = Math.max(1, terminal.columns ?? 80);
    const rows = widths.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    widths = [];
    shown = "";
    return `\r${rows > 1 ? `\u001b[${rows - 1}A` : ""}\u001b[J`;
  };
  const draw = (): void => {
    clearTimeout(waiting);
    waiting = undefined;
    drawnAt = now();
    const next = lines();
    const text = next.join("\n");
    if (text === shown) return;
    // One write, so that nothing flickers.
    terminal.write(`${erase()}${text}`);
    shown = text;
    widths = next.map((line) => columnsOf(withoutColour(line)));
  };
  return {
    change() {
      if (!stopped) draw();
    },
    collect() {
      if (stopped || waiting) return;
      waiting = setTimeout(draw, Math.max(COLLECT_MS, MIN_REDRAW_MS - (now() - drawnAt)));
      waiting.unref();
    },
    clear() {
      // A redraw that is still due would be written into whatever follows.
      clearTimeout(waiting);
      waiting = undefined;
      const text = erase();
      if (text !== "") terminal.write(text);
    },
    stop() {
      stopped = true;
      this.clear();
    },
  };
}

const withoutColour = (line: string): string => line.replace(/\u001b\[\d*m/g, "");
