/** Asks the user at the terminal about calls that no rule decides. */
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { sanitise } from "../lib/text.ts";
import { permissionText } from "../protocol/permission-text.ts";
import { allowedAddress, permissionResult } from "../server/clients/permission-decision.ts";
import type { PermissionRequest } from "../session/requests/requests.ts";
import type { Session } from "../session/session.ts";
import { requestLines } from "../terminal/panels/request-lines.ts";
import { wrapPlain } from "../terminal/screen/width.ts";
import type { TerminalTurns } from "./fill-form.ts";
import type { ProgressOutput } from "./output/progress.ts";

type Decision = { readonly kind: string; readonly domain?: string };

interface ApprovalTerminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean; setRawMode?(mode: boolean): unknown };
  readonly output: NodeJS.WritableStream & { readonly columns?: number };
}

interface ApprovalOptions {
  readonly terminal: ApprovalTerminal;
  readonly bar: Pick<ProgressOutput, "pause">;
  /** Shared with other code that asks at the same terminal. */
  readonly turns?: TerminalTurns;
}

/** Stands before each row of a request, so that none of them looks like the question. */
const BAR = "  | ";

const nothing = (): void => undefined;

/**
 * Answers the permission requests of the session with typed input, one after the other. At the end of the input,
 * requests are left to the rules, which deny them. Returns a function that stops it.
 */
export function askForApproval(
  session: Session,
  { terminal, bar, turns = { last: Promise.resolve() } }: ApprovalOptions,
): () => void {
  return session.requests.attach({
    kinds: ["permission"],
    handle(request, signal) {
      if (request.kind !== "permission") return Promise.resolve(undefined);
      const { permissionRequest } = request;
      const asked = turns.last.then(async () => {
        const resume = bar.pause();
        try {
          const decision = await typedDecision(permissionRequest, terminal, signal);
          return decision && (await answerTo(session, permissionRequest, decision));
        } finally {
          resume();
        }
      });
      turns.last = asked.then(nothing, nothing);
      return asked;
    },
  });
}

async function answerTo(session: Session, asked: PermissionRequest, decision: Decision) {
  const { services, cwd } = session.workspace;
  const locationKey = (): string => services?.permissions.locate(cwd).locationKey ?? cwd;
  const address = allowedAddress(decision, asked);
  if (address) await services?.permissions.allowUrl(address)();
  return permissionResult(decision, asked, { locationKey });
}

/** Returns undefined if the input has ended or the request is over. */
async function typedDecision(
  asked: PermissionRequest,
  { input, output }: ApprovalTerminal,
  signal: AbortSignal,
): Promise<Decision | undefined> {
  await dropTypedAhead(input);
  if (signal.aborted) return undefined;
  const { text, canAllowForSession } = permissionText(asked);
  // Without raw mode Ctrl-C still reaches the process as a signal.
  const lines = createInterface({ input, terminal: false });
  const typed = lines[Symbol.asyncIterator](); // before the question, so that no line is missed
  const stop = (): void => lines.close();
  signal.addEventListener("abort", stop, { once: true });
  const more = canAllowForSession ? ", [a] for this session, [p] always in this folder" : "";
  const question = `Allow? [y] once${more}, [d] deny, [n <why>] deny and say why: `;
  const rows = requestLines(sanitise(text)).flatMap((line) => wrapPlain(line, (output.columns || 80) - BAR.length));
  output.write(`\n${rows.map((row) => `${BAR}${row}\n`).join("")}${question}`);
  try {
    for await (const line of typed) {
      const decision = decisionOf(line.trim(), asked, { canAllowForSession });
      if (decision !== undefined) return decision;
      output.write(question);
    }
    output.write("\n"); // later output starts on a clean line
    return undefined;
  } finally {
    signal.removeEventListener("abort", stop);
    lines.close();
  }
}

/** Long enough to read what waits in the terminal. */
const DROP_MS = 30;

/** Drops typed text, which cannot answer a question that was not shown yet. Raw mode also reaches a line without its end. */
async function dropTypedAhead(input: ApprovalTerminal["input"]): Promise<void> {
  if (!input.isTTY || !input.setRawMode) return;
  const drop = (typed: Buffer): void => {
    if (typed.includes(CTRL_C)) process.kill(process.pid, "SIGINT");
  };
  input.setRawMode(true);
  input.on("data", drop);
  await setTimeout(DROP_MS);
  input.pause();
  input.off("data", drop);
  input.setRawMode(false);
}

const CTRL_C = 3;

/** Reads an answer. The keys are those of a card in the terminal (`terminal/attention.ts`); text after `n` is sent to the model. */
function decisionOf(
  typed: string,
  asked: PermissionRequest,
  { canAllowForSession }: { canAllowForSession: boolean },
): (Decision & { feedback?: string }) | undefined {
  const [, word = "", rest = ""] = /^(\S*)\s*(.*)$/s.exec(typed) ?? [];
  switch (word.toLowerCase()) {
    case "y":
    case "yes":
      return { kind: "approve-once" };
    case "d":
    case "n":
    case "no":
      return { kind: "reject", ...(rest !== "" && { feedback: rest }) };
    case "a":
      return canAllowForSession ? { kind: "approve-for-session" } : undefined;
    case "p": {
      if (!canAllowForSession) return undefined;
      return { kind: "approve-permanently", ...(asked.kind === "url" && { domain: new URL(asked.url).host }) };
    }
    default:
      return undefined;
  }
}
