import { columnsOf } from "./columns.ts";

/** The part of a terminal stream that drawing needs. */
export interface Terminal {
  write(text: string): unknown;
  readonly columns?: number;
  readonly rows?: number;
}

/** How long what agents do is collected before it is drawn, and how far apart such drawings are: no eye follows more. */
const COLLECT_MS = 50;
const MIN_REDRAW_MS = 100;

/** Lines at the bottom of a terminal that are drawn over and over, and taken away before anything else is written. */
export interface Screen {
  /** Something changed that must be seen at once; nothing is written where it looks the same. */
  change(): void;
  /** One of many things changed: drawn together with what else changes in these milliseconds. */
  collect(): void;
  clear(): void;
  /** For good. */
  stop(): void;
}

export function screen(options: { terminal: Terminal; now: () => number; lines: () => readonly string[] }): Screen {
  const { terminal, now, lines } = options;
  let widths: number[] = [];
  let shown = "";
  let drawnAt = Number.NEGATIVE_INFINITY;
  let waiting: NodeJS.Timeout | undefined;
  let stopped = false;

  // A terminal that became narrower has broken our lines: they take more rows now.
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
    // In one write, so that nothing flickers.
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
      const text = erase();
      if (text !== "") terminal.write(text);
    },
    stop() {
      stopped = true;
      clearTimeout(waiting);
      this.clear();
    },
  };
}

const withoutColour = (line: string): string => line.replace(/\u001b\[\d*m/g, "");
