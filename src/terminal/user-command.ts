/** Commands that the user runs: `!command` for the next prompt, `!!command` without the model. */
import { randomUUID } from "node:crypto";
import type { TerminalSession } from "./session.ts";

const MAX_CHARACTERS = 20_000;

/** Returns the text that goes along with the next prompt; undefined if nothing does. */
export async function runUserCommand(session: TerminalSession, text: string): Promise<string | undefined> {
  const isHidden = text.startsWith("!!");
  const command = text.slice(isHidden ? 2 : 1).trim();
  if (command === "") return undefined;
  const params = { requestId: randomUUID(), command, ...(isHidden && { hiddenFromModel: true }) };
  const result = (await session.request("session.shell.executeUserRequested", params)) as Ran;
  const output = (result.output ?? result.error ?? "").slice(-MAX_CHARACTERS);
  return isHidden ? undefined : `I ran \`${command}\`:\n\n${output}`;
}

interface Ran {
  readonly output?: string;
  readonly error?: string;
}
