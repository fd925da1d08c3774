import { sanitise } from "../../lib/text.ts";

/** One line for people, on stderr: whatever it quotes cannot drive the terminal or pass for another line. */
export function say(text: string): void {
  process.stderr.write(
    `troupe: ${sanitise(text)
      .replace(/\s*\n\s*/g, " ")
      .trim()}\n`,
  );
}

/** As `say`, for what needs its lines: the stack of a defect. */
export function sayLines(text: string): void {
  process.stderr.write(`troupe: ${sanitise(text).trimEnd()}\n`);
}
