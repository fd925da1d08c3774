/** `troupe init`: writes an AGENTS.md after looking at the repository. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { sanitise, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { type Arguments, usage } from "../args.ts";
import { terminalAsk } from "../ask.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { agentsFile } from "./agents-file.ts";
import { improveDraft } from "./improve.ts";
import { survey } from "./survey.ts";

const FILE = "AGENTS.md";

export async function initCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words.length > 1) throw usage("troupe init takes flags only.");
  const { cwd, gitRoot } = workingDirectory(process.cwd());
  const root = gitRoot ?? cwd;
  const path = join(root, FILE);
  const isPrinted = given.has("print") || given.has("dry-run");
  if (!isPrinted) await requireConsent(given, path);
  const draft = agentsFile(await survey(root));
  const text = (await wantsModel(given, launcher, isPrinted))
    ? await improveDraft(draft, { given, launcher, root })
    : undefined;
  if (isPrinted) {
    await write(process.stdout.isTTY ? sanitise(text ?? draft) : (text ?? draft));
    if (given.has("dry-run")) printMessage(`nothing was written; it would go to ${path}`);
    return exitCodes.done;
  }
  await replaceFile(nodeDisk, path, text ?? draft);
  await write(`Wrote ${sanitiseLine(path)}\n`);
  printMessage("Read it and correct it: agents see this file in every session here.");
  sayOthers(root);
  return exitCodes.done;
}

/** An existing file is replaced only with `--force` or the user's consent. */
async function requireConsent(given: Arguments, path: string): Promise<void> {
  if (!existsSync(path) || given.has("force")) return;
  const { ask } = terminalAsk();
  if (await ask?.(`${path} exists. Replace it? [y/N] `)) return;
  throw new TroupeError("failed", `${path} exists and was not changed.`, {
    hint: "See a draft with --print, or replace the file with --force.",
  });
}

/** `--model` is consent. Otherwise the user is asked, if a model is configured and there is a terminal. */
async function wantsModel(given: Arguments, launcher: Launcher, isPrinted: boolean): Promise<boolean> {
  if (given.text("model") !== undefined) return true;
  const { ask } = terminalAsk();
  if (ask === undefined || isPrinted) return false;
  const { models } = createRuntime({ environment: process.env, importModule: launcher.importModule });
  const model = await models.resolve().catch(() => undefined);
  if (model === undefined || model.providerId === "understudy") return false;
  return ask(`Let ${sanitiseLine(model.label)} read the repository and improve the draft? [y/N] `);
}

/** Names other files with instructions, which sessions read as well. */
function sayOthers(root: string): void {
  const others = ["CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"].filter((name) =>
    existsSync(join(root, name)),
  );
  if (others.length > 0) printMessage(`there is also ${others.join(", ")}: keep them from contradicting each other`);
}
