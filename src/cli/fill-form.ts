/** Asks the forms of MCP servers on the terminal, one field after another. The end of the input cancels. */
import { createInterface } from "node:readline";
import { isObject } from "../lib/json.ts";
import { sanitise } from "../lib/text.ts";
import type { Answerer } from "../session/requests/broker.ts";
import type { AnswersByKind, AnyRequest } from "../session/requests/requests.ts";

type Form = Extract<AnyRequest, { kind: "elicitation" }>;
type Filled = AnswersByKind["elicitation"];
type Value = string | number | boolean | string[];

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
  const content: Record<string, Value> = {};
  for (const [name, field] of Object.entries(requestedSchema?.properties ?? {})) {
    const isRequired = requestedSchema?.required?.includes(name) ?? false;
    const value = await askField({ name, field: isObject(field) ? field : {}, isRequired }, ask);
    if (value === "cancel") return { action: "cancel" };
    if (value.given !== undefined) content[name] = value.given;
  }
  return { action: "accept", content };
}

interface Field {
  readonly name: string;
  readonly field: Readonly<Record<string, unknown>>;
  readonly isRequired: boolean;
}

async function askField(what: Field, ask: AskLine): Promise<{ given: Value | undefined } | "cancel"> {
  const { name, field, isRequired } = what;
  const title = typeof field.title === "string" ? field.title : name;
  const about = typeof field.description === "string" ? ` – ${line(field.description)}` : "";
  const choices = choicesOf(field);
  const hints = [
    ...(choices.length > 0 ? [choices.join(" | ")] : [typeof field.type === "string" ? field.type : "text"]),
    ...(field.default === undefined ? [] : [`default: ${line(String(field.default))}`]),
    ...(isRequired ? [] : ["optional"]),
  ];
  let problem = "";
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const answer = await ask(`  ${problem}${line(title)}${about} (${hints.map(line).join("; ")}): `);
    if (answer === undefined) return "cancel";
    if (answer === "" && (field.default !== undefined || !isRequired)) return { given: undefined };
    const value = parsedValue(answer, field, choices);
    if (value !== undefined) return { given: value };
    problem = "That does not fit. ";
  }
  return "cancel";
}

/** Returns undefined if the text is no valid value for the field. */
function parsedValue(words: string, field: Field["field"], choices: readonly string[]): Value | undefined {
  if (field.type === "boolean") {
    if (/^(y(es)?|true)$/i.test(words)) return true;
    return /^(no?|false)$/i.test(words) ? false : undefined;
  }
  if (field.type === "number" || field.type === "integer") {
    const number = Number(words);
    const fits = words !== "" && Number.isFinite(number) && (field.type === "number" || Number.isInteger(number));
    return fits ? number : undefined;
  }
  if (field.type === "array") {
    const items = words.split(",").map((item) => item.trim());
    return items.every((item) => choices.length === 0 || choices.includes(item)) ? items : undefined;
  }
  if (words === "" || (choices.length > 0 && !choices.includes(words))) return undefined;
  return words;
}

/** Returns the values of `enum`, or of `const` in `oneOf` and `anyOf`, of the field or of its items. */
function choicesOf(field: Field["field"]): string[] {
  const source = isObject(field.items) ? field.items : field;
  if (Array.isArray(source.enum)) return source.enum.map(String);
  const titled = [source.oneOf, source.anyOf].find(Array.isArray) ?? [];
  return titled.flatMap((one: unknown) => (isObject(one) && typeof one.const === "string" ? [one.const] : []));
}

const line = (text: string): string => sanitise(text).replace(/\s+/g, " ");
const indented = (text: string): string => sanitise(text).trim().replace(/\n/g, "\n  ");
