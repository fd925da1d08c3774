import { Terminal } from "@xterm/headless";
import { expect, it } from "vitest";
import { RESET_TERMINAL } from "../../src/terminal/reset.ts";

const written = (terminal: Terminal, bytes: string): Promise<void> =>
  new Promise((resolve) => terminal.write(bytes, resolve));

it("a reset turns off every mode that a killed process left on, and keeps text and cursor", async () => {
  const terminal = new Terminal({ cols: 40, rows: 10, allowProposedApi: true });
  await written(terminal, "one\r\ntwo\r\n› dra");
  const { modes: before } = terminal;
  await written(terminal, "\u001b[?2004h\u001b[?1004h\u001b[>1u\u001b[?25l\u001b[?1h\u001b[?1049h\u001b[?1000h");
  await written(terminal, "\u001b[5;5Hthe overlay\u001b[31m");
  await written(terminal, RESET_TERMINAL);
  expect(terminal.modes).toEqual(before);
  expect(terminal.buffer.active.type).toBe("normal");
  const { cursorX, cursorY } = terminal.buffer.active;
  expect([cursorX, cursorY]).toEqual([5, 2]);
  await written(terminal, `${RESET_TERMINAL}ft`);
  expect(terminal.buffer.active.getLine(2)?.translateToString(true)).toBe("› draft");
  // tmux has another place for the cursor of ESC 7 than for that of the alternate screen.
  expect(RESET_TERMINAL).not.toContain("\u001b7");
});
