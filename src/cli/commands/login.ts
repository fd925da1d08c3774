import { sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { KeyedProvider } from "../../runtime/models/provider-keys.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { readPiped } from "../stdin.ts";

/** `troupe login`: asks for the key of a provider, tests it with one request and stores it. */
export async function loginCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const [, wanted, stray] = given.words;
  if (stray !== undefined) throw usage(`troupe login takes one provider, but got "${stray}" too.`);
  const { models } = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const keys = await models.keys();
  const providers = await keys.list();
  const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
  if (wanted === undefined && !isTerminal) throw usage(`Name a provider: ${ids(providers)}.`);
  const provider = wanted ?? (await chooseProvider(providers));
  const known = providers.find(({ id }) => id === provider);
  const target = known ? `${provider} at ${known.host}` : provider;
  const apiKey = isTerminal ? await hiddenLine(sanitise(`Key of ${target} (not shown): `)) : await pipedLine();
  printMessage(`testing the key with one request to ${sanitise(target)}`);
  const { model } = await keys.set({ provider, apiKey });
  await write(`The key is stored. ${sanitise(model)} answers.\n`);
  return exitCodes.done;
}

const ids = (providers: readonly KeyedProvider[]): string => providers.map(({ id }) => id).join(", ");

async function chooseProvider(providers: readonly KeyedProvider[]): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const rows = providers.map(
    ({ id, name, hasKey }, index) => `  ${index + 1}  ${name} (${id})${hasKey ? ", has a key" : ""}`,
  );
  process.stderr.write(sanitise(`${rows.join("\n")}\n`));
  const stop = new AbortController();
  lines.once("close", () => stop.abort());
  try {
    const answer = (await lines.question("Which provider? Number or name: ", { signal: stop.signal })).trim();
    return providers[Number(answer) - 1]?.id ?? answer;
  } catch (cause) {
    throw new TroupeError("interrupted", "No provider was chosen.", { cause });
  } finally {
    lines.close();
  }
}

/** Reads a line without showing it. Control-C and the end of the input cancel. */
async function hiddenLine(question: string): Promise<string> {
  const { stdin, stderr } = process;
  stderr.write(question);
  stdin.setRawMode(true);
  stdin.resume();
  stdin.setEncoding("utf8");
  let line = "";
  try {
    for await (const chunk of stdin as AsyncIterable<string>) {
      // A terminal marks pasted text, if a program before left that mode on.
      for (const character of chunk.replace(/\u001b\[20[01]~/g, "")) {
        if (character === "\r" || character === "\n") return line;
        if (character === "\u0003" || character === "\u0004")
          throw new TroupeError("interrupted", "No key was entered.");
        line = character === "\u007f" || character === "\b" ? line.slice(0, -1) : line + character;
      }
    }
    throw new TroupeError("interrupted", "No key was entered.");
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
}

async function pipedLine(): Promise<string> {
  const piped = await readPiped({ patient: true });
  if (piped.kind !== "data") throw usage("Pipe the key in, or run troupe login in a terminal.");
  return piped.bytes.toString("utf8").trim();
}
