import { Terminal } from "@xterm/headless";

/** A terminal emulator without a window: what a person would see after the bytes that were written. */
export interface VirtualTerminal {
  write(bytes: string): Promise<void>;
  resize(columns: number, rows: number): void;
  size(): { columns: number; rows: number };
  /** Every logical line of the scrollback and the screen, wrapped rows joined, without trailing blanks. */
  lines(): string[];
  /** The rows of the screen. */
  screen(): string[];
  cursor(): { row: number; column: number };
  /** Titles that were set, and anything else that left the screen (OSC 52 and its like). */
  readonly titles: string[];
  readonly clipboard: string[];
  /** Answers to questions of the program, such as for the cursor's position. */
  onAnswer(listener: (bytes: string) => void): void;
}

export interface VirtualTerminalOptions {
  readonly columns: number;
  readonly rows: number;
  readonly wrapsCaretLine?: boolean;
  /** False: rows of the screen are cut when it becomes narrower, as xterm does. */
  readonly reflows?: boolean;
}

export function virtualTerminal(options: VirtualTerminalOptions): VirtualTerminal {
  const { columns, rows, wrapsCaretLine = true, reflows = true } = options;
  const terminal = new Terminal({
    cols: columns,
    rows,
    scrollback: 100_000,
    allowProposedApi: true,
    reflowCursorLine: wrapsCaretLine,
  });
  if (!reflows) Object.defineProperty(insideOf(terminal).buffers.normal, "_isReflowEnabled", { value: false });
  const titles: string[] = [];
  const clipboard: string[] = [];
  terminal.onTitleChange((title) => titles.push(title));
  terminal.parser.registerOscHandler(52, (data) => {
    clipboard.push(data);
    return true;
  });
  const buffer = () => terminal.buffer.active;
  return {
    titles,
    clipboard,
    write: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    resize(toColumns, toRows) {
      if (reflows) terminal.resize(toColumns, toRows);
      else resizeWithoutReflow(terminal, toColumns, toRows);
    },
    size: () => ({ columns: terminal.cols, rows: terminal.rows }),
    lines() {
      const found: string[] = [];
      for (let index = 0; index < buffer().length; index++) {
        const line = buffer().getLine(index);
        // A row that goes on in the next one is full: its blanks belong to the text.
        const isContinued = buffer().getLine(index + 1)?.isWrapped === true;
        const text = line?.translateToString(!isContinued) ?? "";
        if (line?.isWrapped && found.length > 0) found[found.length - 1] += text;
        else found.push(text);
      }
      while (found.at(-1) === "") found.pop();
      return found.map((line) => line.trimEnd());
    },
    screen() {
      return Array.from(
        { length: terminal.rows },
        (_, row) =>
          buffer()
            .getLine(buffer().baseY + row)
            ?.translateToString(true) ?? "",
      );
    },
    onAnswer: (listener) => void terminal.onData(listener),
    cursor: () => ({ row: buffer().cursorY, column: buffer().cursorX }),
  };
}

interface Row {
  readonly length: number;
  resize(columns: number, fill: unknown): boolean;
}

interface Inside {
  readonly buffers: {
    readonly normal: {
      readonly ybase: number;
      readonly lines: { readonly length: number; get(row: number): Row };
      getNullCell(): unknown;
    };
  };
}

const insideOf = (terminal: Terminal): Inside => (terminal as unknown as { readonly _core: Inside })._core;

/**
 * Resizes as xterm does: rows on the screen are cut, before rows of the scrollback come back to it and after, and those of the
 * scrollback stay whole. Without reflow this emulator would store the rest of rows on the screen, and cut the scrollback.
 */
function resizeWithoutReflow(terminal: Terminal, columns: number, rows: number): void {
  const { normal } = insideOf(terminal).buffers;
  const { resize } = Object.getPrototypeOf(normal.lines.get(0)) as Row;
  const fill = normal.getNullCell();
  for (let index = 0; index < normal.lines.length; index++) {
    const row = normal.lines.get(index);
    row.resize = (to, cell) => to > row.length && resize.call(row, to, cell);
  }
  const cut = (): void => {
    for (let index = normal.ybase; index < normal.lines.length; index++) {
      resize.call(normal.lines.get(index), columns, fill);
    }
  };
  cut();
  terminal.resize(columns, rows);
  cut();
}
