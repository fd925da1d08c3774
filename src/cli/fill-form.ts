/** Asks the forms of MCP servers on the terminal, one field after another. The end of the input cancels. */
import { createInterface } from "node:readline";
import { type FieldAnswer, type FieldValue, type FormField, fieldAnswer, formFields } from "../lib/form-fields.ts";
import { sanitise } from "../lib/text.ts";
import type { Answerer } from "../session/requests/broker.ts";
import type { AnswersByKind, AnyRequest } from "../session/requests/requests.ts";

type Form = Extract<AnyRequest, { kind: "elicitation" }>;
type Filled = AnswersByKind["elicitation"];

/** Writes a question and reads one line. Returns undefined at the end of the input and on a timeout. */
export type AskLine = (question: string) => Promise<string | undefined>;

/** Serialises questions at one terminal. */
export interface TerminalTurns {
  last: Promise<void>;
}

export interface FormTerminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Hides live lines on the screen. Returns a function that shows them again. */
  pause(): () => void;
  /** Shared with other code that asks at the same terminal. */
  readonly turns?: TerminalTurns;
}

/** Shows one form at a time; the others wait. */
export function terminalForms({ input, output, pause, turns = { last: Promise.resolve() } }: FormTerminal): Answerer {
  const nothing = (): void => undefined;
  const ask = async (request: Form, signal: AbortSignal): Promise<Filled | undefined> => {
    if (signal.aborted) return undefined;
    const resume = pause();
    const lines = createInterface({ input, output });
    const stop = (): void => lines.close();
    // The terminal is in raw mode: Ctrl+C arrives as a key and must still reach the program.
    lines.once("SIGINT", () => {
      stop();
      process.kill(process.pid, "SIGINT");
    });
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await fillForm(request, (question) => lineOf(lines, question));
    } finally {
      signal.removeEventListener("abort", stop);
      lines.close();
      resume();
    }
  };
  return {
    kinds: ["elicitation"],
    handle(request, signal) {
      if (request.kind !== "elicitation") return Promise.resolve(undefined);
      const asked = turns.last.then(() => ask(request, signal));
      turns.last = asked.then(nothing, nothing);
      return asked;
    },
  };
}

function lineOf(lines: ReturnType<typeof createInterface>, question: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const closed = (): void => resolve(undefined);
    lines.once("close", closed);
    lines.question(question, (line) => {
      lines.off("close", closed);
      resolve(line.trim());
    });
  });
}

const MAX_TRIES = 3;

/** Shows the server's text on separate lines, under a line of ours that names the server. */
export async function fillForm(request: Form, ask: AskLine): Promise<Filled> {
  const { message, elicitationSource = "a program", mode, url, requestedSchema } = request;
  const head = `\nThe MCP server ${elicitationSource} asks (empty line: default; Ctrl+D: cancel):\n  ${indented(message)}\n`;
  if (mode === "url") {
    const answer = await ask(`${head}  Open this address yourself: ${line(url ?? "")}\n  Done? (y/n) `);
    if (answer === undefined) return { action: "cancel" };
    return { action: /^y(es)?$/i.test(answer) ? "accept" : "decline" };
  }
  const consent = await ask(`${head}  Answer it? (y/n) `);
  if (consent === undefined) return { action: "cancel" };
  if (!/^(y(es)?)?$/i.test(consent)) return { action: "decline" };
  const content: Record<string, FieldValue> = {};
  for (const field of formFields(requestedSchema)) {
    const answer = await askField(field, ask);
    if (answer === "cancel") return { action: "cancel" };
    if (answer.kind === "value") content[field.name] = answer.value;
  }
  return { action: "accept", content };
}

async function askField(field: FormField, ask: AskLine): Promise<FieldAnswer | "cancel"> {
  let problem = "";
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const text = await ask(`  ${problem}${field.label} (${field.hint}): `);
    if (text === undefined) return "cancel";
    const answer = fieldAnswer(field, text);
    if (answer.kind !== "problem") return answer;
    problem = `That does not fit: ${answer.problem}. `;
  }
  return "cancel";
}

const line = (text: string): string => sanitise(text).replace(/\s+/g, " ");
const indented = (text: string): string => sanitise(text).trim().replace(/\n/g, "\n  ");
