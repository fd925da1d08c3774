/** The sequences that turn off the modes which the terminal interface sets. */

/** Written on every regular exit: focus reports and bracketed paste off, cursor visible, no style. */
export const MODES_OFF = "\u001b[?1004l\u001b[?2004l\u001b[?25h\u001b[0m";

/**
 * Repairs a terminal that a killed process left behind, whatever was open in it. It moves no text: the alternate
 * screen is entered before it is left, which saves the cursor, so that it stays in its place where none was open. (Saved by
 * `ESC 7`, it would not stay in tmux.) The line mode of the device
 * (raw mode) is not part of it: that needs `stty sane`.
 */
export const RESET_TERMINAL = [
  "\u001b[?1049h\u001b[?1049l", // alternate screen
  "\u001b[<u\u001b[>4;0m", // kitty keyboard protocol, modifyOtherKeys
  "\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l", // mouse
  "\u001b[?2026l\u001b[?7h\u001b[?1l\u001b>", // synchronised output, wrapping, cursor keys, keypad
  "\u001b(B\u000f", // character set
  MODES_OFF,
].join("");
