import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import type { Arguments } from "../args.ts";
import type { Launcher } from "../launcher.ts";
import { printMessage } from "../output/print-message.ts";
import { progressOf, watch } from "../output/watching.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";
import prompt from "./improve.md";

const MAX_CHARACTERS = 40_000;

/** Lets the model read the repository and improve the draft. Returns undefined if its answer cannot be used. */
export async function improveDraft(
  draft: string,
  { given, launcher, root }: { given: Arguments; launcher: Launcher; root: string },
): Promise<string | undefined> {
  const runtime = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const bar = progressOf(given, { waitMs: 0 });
  const session = await runtime.createSession({
    ...sessionRequest(given, "text"),
    cwd: root,
    client: { askUser: false },
    tools: { choice: { available: ["view", "glob", "grep"] } },
    permissions: {},
  });
  const removeInterrupt = onInterrupt(() => void session.close());
  try {
    watch(session, bar);
    const outcome = await session.sendAndWait({ prompt: `${prompt}\n\n${wrapInTag("draft", {}, quoted(draft))}` });
    bar.stop();
    const text = outcome.kind === "done" ? fileIn(outcome.answer) : undefined;
    if (text === undefined)
      printMessage(`the model's answer cannot be used (${outcome.kind}); the draft stays as it was found`);
    return text;
  } finally {
    bar.stop();
    removeInterrupt();
    await session.close();
    await runtime.close();
  }
}

/** Returns the file in an answer, without a fence around it. It must be Markdown that begins with a heading. */
export function fileIn(answer: string): string | undefined {
  const fenced = /^```(?:markdown|md)?\n([\s\S]*?)\n```$/.exec(answer.trim())?.[1];
  const text = (fenced ?? answer).trim();
  return text.startsWith("#") && text.length <= MAX_CHARACTERS ? `${text}\n` : undefined;
}
