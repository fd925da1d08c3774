import { execFile } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { isatty } from "node:tty";
import { nodeDisk } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { RESET_TERMINAL } from "../../terminal/reset.ts";
import type { Check, Finding } from "./finding.ts";

const ESC = "\u001b[";

/** Checks the terminal that stdout is. */
export const terminal: Check = async ({ environment }) => {
  const { stdin, stdout } = process;
  if (!stdout.isTTY)
    return [{ id: "terminal.kind", status: "ok", summary: "stdout is not a terminal: nothing to check" }];
  const { TERM = "", COLORTERM = "", TMUX, NO_COLOR } = environment;
  const size = `${stdout.columns} × ${stdout.rows}`;
  const keyboard = stdin.isTTY ? await speaksKeyboardProtocol() : false;
  return [
    { id: "terminal.kind", status: "ok", summary: `TERM=${TERM}, ${size}` },
    ...(stdout.columns < 60
      ? [warning("terminal.width", `only ${stdout.columns} columns wide`, "Make the window at least 60 columns wide.")]
      : []),
    ...(TERM === "dumb" || TERM === ""
      ? [
          warning(
            "terminal.term",
            "the terminal cannot move its cursor: labelled lines are printed instead",
            "Set TERM.",
          ),
        ]
      : []),
    {
      id: "terminal.colours",
      status: "ok",
      summary: coloursText({ NO_COLOR, COLORTERM, depth: stdout.getColorDepth() }),
    },
    { id: "terminal.keyboard", status: "ok", summary: keyboardText(keyboard) },
    ...(TMUX === undefined ? [] : [await tmux()]),
    ...utf8(environment),
  ];
};

const warning = (id: string, summary: string, remedy: string): Finding => ({ id, status: "warning", summary, remedy });

function coloursText(have: { NO_COLOR: string | undefined; COLORTERM: string; depth: number }): string {
  if (have.NO_COLOR) return "colours: off, by NO_COLOR";
  return `colours: ${have.COLORTERM === "truecolor" || have.depth === 24 ? "24 bit" : `${2 ** Math.min(have.depth, 8)}`}`;
}

const keyboardText = (isThere: boolean): string =>
  isThere
    ? "keyboard protocol: yes, Shift+Enter is a new line"
    : "keyboard protocol: no, use Ctrl+J or a backslash before Enter for a new line";

function utf8({ LC_ALL, LC_CTYPE, LANG }: Readonly<Record<string, string | undefined>>): Finding[] {
  const locale = LC_ALL || LC_CTYPE || LANG || "";
  if (/utf-?8/i.test(locale)) return [];
  return [
    warning(
      "terminal.locale",
      `the locale ${locale || "is not set"} is not UTF-8`,
      "Set LANG=C.UTF-8 or another UTF-8 locale.",
    ),
  ];
}

/** Asks tmux whether it passes modified keys on. */
function tmux(): Promise<Finding> {
  const id = "terminal.tmux";
  return new Promise((resolve) => {
    execFile("tmux", ["show-options", "-gv", "extended-keys"], { timeout: 2_000 }, (error, stdout) => {
      if (!error && /^(on|always)/.test(stdout))
        return resolve({ id, status: "ok", summary: "tmux: extended keys are on" });
      const remedy = "Add to ~/.tmux.conf: set -s extended-keys on";
      resolve(warning(id, "tmux: extended keys are off, so Shift+Enter arrives as Enter", remedy));
    });
  });
}

const ANSWER_MS = 200;

/** Asks the terminal, and then for its attributes, which every terminal answers. */
function speaksKeyboardProtocol(): Promise<boolean> {
  const { stdin, stdout } = process;
  return new Promise((resolve) => {
    let answer = "";
    const end = (): void => {
      clearTimeout(timer);
      stdin.off("data", onData);
      stdin.setRawMode(false);
      stdin.pause();
      resolve(answer.includes(`${ESC}?`) && /\u001b\[\?\d+u/.test(answer));
    };
    const onData = (chunk: Buffer): void => {
      answer += chunk.toString("latin1");
      if (/\u001b\[\?[\d;]*c/.test(answer)) end();
    };
    const timer = setTimeout(end, ANSWER_MS);
    stdin.setRawMode(true);
    stdin.on("data", onData);
    stdout.write(`${ESC}?u${ESC}c`);
  });
}

/** Writes to the controlling terminal, also if stdout is redirected. Throws if there is none. */
export async function resetTerminal(): Promise<void> {
  const descriptor = openTerminal();
  try {
    await nodeDisk.write(descriptor, Buffer.from(RESET_TERMINAL));
    await sane(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function openTerminal(): number {
  try {
    return openSync("/dev/tty", "r+");
  } catch (cause) {
    throw new TroupeError("failed", "There is no terminal to reset.", {
      hint: "Run it in the terminal that is broken; typing may be invisible.",
      cause,
    });
  }
}

/** At its exit Node restores the mode that the terminal had at its start, on descriptors that are still open. */
export function leaveTerminal(): void {
  for (const descriptor of [0, 1, 2]) if (isatty(descriptor)) closeSync(descriptor);
}

/** Raw mode belongs to the terminal driver: `stty sane` ends it. */
async function sane(descriptor: number): Promise<void> {
  const { spawn } = await import("node:child_process");
  await new Promise<void>((resolve, reject) => {
    const child = spawn("stty", ["sane"], { stdio: [descriptor, "ignore", "ignore"], timeout: 5_000 });
    child.once("error", () => reject(new TroupeError("failed", "stty was not found.", { hint: "Run: reset" })));
    child.once("close", () => resolve());
  });
}
