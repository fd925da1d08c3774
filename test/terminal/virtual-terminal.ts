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

export function virtualTerminal(options: { columns: number; rows: number; wrapsCaretLine?: boolean }): VirtualTerminal {
  const { columns, rows, wrapsCaretLine = true } = options;
  const terminal = new Terminal({
    cols: columns,
    rows,
    scrollback: 100_000,
    allowProposedApi: true,
    reflowCursorLine: wrapsCaretLine,
  });
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
    resize: (toColumns, toRows) => terminal.resize(toColumns, toRows),
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
