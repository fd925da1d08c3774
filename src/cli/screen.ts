import { columnsOf } from "./tree.ts";

/** The part of a terminal stream that drawing needs. */
export interface Terminal {
  write(text: string): unknown;
  readonly columns?: number;
  readonly rows?: number;
}

/** No eye follows more. */
const MIN_REDRAW_MS = 100;

/** Lines at the bottom of a terminal that are drawn over and over, and taken away before anything else is written. */
export interface Screen {
  /** Something changed: drawn now, or as soon as enough time has passed since the last drawing. */
  change(): void;
  clear(): void;
  /** For good. */
  stop(): void;
}

export function screen(options: { terminal: Terminal; now: () => number; lines: () => readonly string[] }): Screen {
  const { terminal, now, lines } = options;
  let widths: number[] = [];
  let drawnAt = Number.NEGATIVE_INFINITY;
  let waiting: NodeJS.Timeout | undefined;
  let stopped = false;

  // A terminal that became narrower has broken our lines: they take more rows now.
  const erase = (): string => {
    if (widths.length === 0) return "";
    const columns = Math.max(1, terminal.columns ?? 80);
    const rows = widths.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    widths = [];
    return `\r${rows > 1 ? `\u001b[${rows - 1}A` : ""}\u001b[J`;
  };
  const draw = (): void => {
    clearTimeout(waiting);
    waiting = undefined;
    const next = lines();
    // In one write, so that nothing flickers.
    terminal.write(`${erase()}${next.join("\n")}`);
    widths = next.map((line) => columnsOf(withoutColour(line)));
    drawnAt = now();
  };
  return {
    change() {
      if (stopped || waiting) return;
      const left = MIN_REDRAW_MS - (now() - drawnAt);
      if (left <= 0) return draw();
      waiting = setTimeout(draw, left);
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
