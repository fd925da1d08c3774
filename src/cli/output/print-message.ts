import { sanitise } from "../../lib/text.ts";

/** Writes one line for the user to stderr. Quoted text cannot control the terminal or imitate another line. */
export function printMessage(text: string): void {
  process.stderr.write(
    `troupe: ${sanitise(text)
      .replace(/\s*\n\s*/g, " ")
      .trim()}\n`,
  );
}

/** Like `printMessage`, for text with several lines, such as a stack. */
export function sayLines(text: string): void {
  process.stderr.write(`troupe: ${sanitise(text).trimEnd()}\n`);
}
