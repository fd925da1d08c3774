/** `troupe` without a prompt, at a terminal: an interactive session. The prompt is painted before anything is loaded. */
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";

/** True when there is neither a prompt nor piped input, and someone at a terminal. */
export function isInteractive(given: Arguments): boolean {
  if (given.text("prompt") !== undefined || given.words.length > 0 || given.has("acp") || given.has("headless"))
    return false;
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/** `notice`: a line for the user that must not be written into the frame. */
export async function interactiveCommand(
  given: Arguments,
  launcher: Launcher,
  notice: string | undefined,
): Promise<ExitCode> {
  const sessionChoice = sessionChoiceOf(given);
  if (isPlain(given)) {
    const { runInteractive } = await import("./interactive-run.ts");
    await runInteractive(given, { launcher, first: undefined, sessionChoice, notice });
    return exitCodes.done;
  }
  const first =
    launcher.first ?? (await import("../../terminal/first-frame.ts")).firstFrame(process.stdin, process.stdout);
  try {
    const { runInteractive } = await import("./interactive-run.ts");
    await runInteractive(given, { launcher, first, sessionChoice, notice });
    return exitCodes.done;
  } finally {
    first.restore();
  }
}

/** Lines in place of a screen: asked for, or the terminal cannot do more. */
function isPlain(given: Arguments): boolean {
  return given.has("plain") || process.env.TERM === "dumb" || process.env.TROUPE_SCREEN_READER === "1";
}

function sessionChoiceOf(given: Arguments) {
  const resume = given.text("resume");
  const sessionId = given.text("session-id");
  const attach = given.text("attach");
  const reference = attach !== undefined && !isPort(attach) ? attach : undefined;
  const chosen = [resume, given.has("continue") || undefined, sessionId, reference].filter((one) => one !== undefined);
  if (chosen.length > 1) throw usage("Use only one of --resume, --continue, --session-id and --attach <session>.");
  if (reference !== undefined) return { kind: "attach", reference } as const;
  if (resume !== undefined) return { kind: "resume", reference: resume } as const;
  if (given.has("continue")) return { kind: "continue" } as const;
  return sessionId === undefined ? ({ kind: "new" } as const) : ({ kind: "id", sessionId } as const);
}

/** `--attach` takes the port of a server, or a session. */
export const isPort = (text: string): boolean => /^\d{1,5}$/.test(text);
