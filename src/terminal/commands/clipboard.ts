/** Puts text into the clipboard of the user, where the screen is: also through tmux and over SSH. */
import { spawn } from "node:child_process";
import { plural } from "../../lib/text.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface ClipboardPorts {
  readonly environment: Environment;
  write(bytes: string): void;
}

const PROGRAM_MS = 3_000;
/** Terminals drop longer sequences, without a word. */
const MAX_OSC_BYTES = 74_000;

/** Returns what happened, in a few words. A terminal does not say whether it took what it was sent. */
export async function copyText(text: string, { environment, write }: ClipboardPorts): Promise<string> {
  const size = plural(text.length, "character");
  for (const [program, ...args] of programsFor(environment)) {
    if (await copyWith(program, args, text, environment)) return `copied ${size} with ${program}`;
  }
  const bytes = Buffer.from(text);
  if (bytes.length > MAX_OSC_BYTES) return `${size} are too many for this terminal: /export writes a file`;
  const sequence = `\u001b]52;c;${bytes.toString("base64")}\u0007`;
  write(environment.TMUX ? `\u001bPtmux;${sequence.replaceAll("\u001b", "\u001b\u001b")}\u001b\\` : sequence);
  return `sent ${size} to the terminal (OSC 52), which may refuse them`;
}

/** tmux sets the clipboard of the terminal that shows it. Over SSH, a program here would set the wrong clipboard. */
function programsFor(environment: Environment): readonly (readonly [string, ...string[]])[] {
  if (environment.TMUX) return [["tmux", "load-buffer", "-w", "-"]];
  if (environment.SSH_CONNECTION || environment.SSH_TTY) return [];
  if (process.platform === "darwin") return [["pbcopy"]];
  return [
    ...(environment.WAYLAND_DISPLAY ? [["wl-copy"] as const] : []),
    ...(environment.DISPLAY ? [["xclip", "-selection", "clipboard", "-in"] as const] : []),
  ];
}

/** Some of these programs stay and serve the text: only the end of the one that was started is waited for. */
function copyWith(program: string, args: readonly string[], text: string, environment: Environment): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ["pipe", "ignore", "ignore"],
      env: { ...environment },
      timeout: PROGRAM_MS,
    });
    child.once("error", () => resolve(false));
    child.once("exit", (code) => resolve(code === 0));
    child.stdin.on("error", () => undefined);
    child.stdin.end(text);
  });
}
