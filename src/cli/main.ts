/**
 * The command line. This folder parses arguments, runs one command (`commands/`) and prints its result (`output/`).
 * This file loads only what the command needs, prints errors in one line, and converts every outcome to an exit code.
 */

import { ModelError } from "../model/model-error.ts";
import { TroupeError, withHint } from "../protocol/errors.ts";
import { protectStateRoot, stateRoot } from "../runtime/home.ts";
import { version } from "../runtime/version.ts";
import { type Arguments, parse, usage } from "./args.ts";
import { sessionDatabase } from "./cluster/database-url.ts";
import { interactiveCommand, isInteractive } from "./commands/interactive.ts";
import { containErrors } from "./contain-errors.ts";
import { type ExitCode, exitCodeOfError, exitCodeOfModelError, exitCodes } from "./exit-codes.ts";
import type { Launcher } from "./launcher.ts";
import { options } from "./options.ts";
import { write } from "./output/output.ts";
import { printMessage, sayLines } from "./output/print-message.ts";

export async function main(launcher: Launcher): Promise<void> {
  // Keeps the event loop alive: Node exits silently when only a promise is pending.
  // A reader that disconnected must not crash the process: code that writes checks for it.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const awake = setInterval(() => undefined, 2 ** 30);
  process.exitCode = await command(process.argv.slice(2), launcher).catch(report);
  clearInterval(awake);
}

async function command(argv: readonly string[], launcher: Launcher): Promise<ExitCode> {
  const given = parse(argv);
  containErrors({ isServer: given.has("acp") || given.has("headless") });
  if (given.has("help") || given.words[0] === "help") return (await import("./help/help.ts")).helpCommand(given);
  if (given.has("version")) return print(`${version}\n`);
  enterFolder(given);
  checkServing(given);
  const repaired = protectStateRoot(stateRoot(process.env), process.env);
  if (given.words.every((word) => word === "-")) checkSessionFlags(given);
  if (isInteractive(given)) return interactiveCommand(given, launcher, repaired);
  if (repaired !== undefined) printMessage(repaired);
  // Editors append `login` to the command line that starts the agent.
  if (given.has("acp") && given.words[0] === "login")
    return (await import("./commands/login.ts")).loginCommand(given, launcher);
  if (given.has("acp")) return (await import("./commands/acp.ts")).acpCommand(given, launcher);
  if (given.has("headless")) return (await import("./commands/headless.ts")).headlessCommand(given, launcher);

  const [word] = given.words;
  if (word !== undefined && word !== "-") return (await import("./dispatch.ts")).runCommand(given, launcher);
  const isRemote = sessionDatabase(given) !== undefined;
  if (isRemote) return (await import("./cluster/remote-prompt.ts")).remotePromptCommand(given);
  return (await import("./prompt-mode.ts")).promptCommand(given, launcher);
}

/** Throws for a flag that only commands take. */
function checkSessionFlags(given: Arguments): void {
  const taken = given.has("headless") ? GATEWAY_FLAGS : DATABASE_FLAGS;
  const stray = given.flags.find(
    (name) => !taken.includes(name) && options.some((option) => option.name === name && option.group === "Commands"),
  );
  if (stray !== undefined)
    throw usage(`--${stray} is a flag of a command, and no command is given.`, "See `troupe help flags`.");
}

/** Flags of `troupe` and `troupe -p` in a session that workers run. */
const DATABASE_FLAGS: readonly string[] = ["database", "ask"];

/** Flags of a server whose sessions run on the workers of a database. */
const GATEWAY_FLAGS: readonly string[] = ["database", "pool", "tenant", "repo", "ref"];

/** Throws for server flags without a server, and for a prompt with a server, whose clients send the prompts. */
function checkServing(given: Arguments): void {
  const [server, other] = ["acp", "headless"].filter((name) => given.has(name));
  if (other) throw usage(`Use either --${server} or --${other}.`);
  if (server && given.text("prompt") !== undefined)
    throw usage(`--${server} takes prompts from its clients: leave out --prompt.`);
  if (server === "acp" && given.text("port") !== undefined)
    throw usage("--acp serves over stdin and stdout: leave out --port.");
  const alone = server ? undefined : ["stdio", "port"].find((name) => given.flags.includes(name));
  if (alone && given.words.length === 0) throw usage(`--${alone} is for a server: add --headless.`);
}

function enterFolder(given: Arguments): void {
  const folder = given.text("cd");
  try {
    if (folder === undefined) process.cwd();
    else process.chdir(folder);
  } catch (cause) {
    const message =
      folder === undefined ? "The working folder does not exist any more." : `-C ${folder}: there is no such folder.`;
    throw new TroupeError("usage", message, { cause });
  }
}

async function print(text: string): Promise<ExitCode> {
  await write(text);
  return exitCodes.done;
}

/** Reports an error that the user can fix in one line. Any other error is a bug and is reported with its stack. */
function report(error: unknown): ExitCode {
  if (error instanceof TroupeError) {
    if (error.kind !== "interrupted") printMessage(withHint(error.message, error.hint)); // the user knows about the interruption
    return exitCodeOfError(error.kind);
  }
  if (error instanceof ModelError) {
    printMessage(withHint(error.message, error.hint));
    return exitCodeOfModelError(error.kind);
  }
  const trouble = fileTrouble(error);
  if (trouble !== undefined) {
    printMessage(trouble);
    return exitCodes.failed;
  }
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  sayLines(`this is a defect in troupe, please report it:\n${detail}`);
  return exitCodes.failed;
}

/** Returns the message for a file system error, which the user can fix, or undefined for other errors. */
function fileTrouble(error: unknown): string | undefined {
  const { code = "", path, syscall = "" } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const reason = refusals.get(code);
  if (reason === undefined || path === undefined) return undefined;
  const verb = /^(scandir|opendir|stat|lstat|read|readlink|access)$/.test(syscall) ? "read" : "write";
  return withHint(`Cannot ${verb} ${path}: ${reason}.`, "TROUPE_HOME names the folder where troupe keeps its files.");
}

const refusals: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied"],
  ["EPERM", "permission denied"],
  ["EROFS", "the disk is read-only"],
  ["ENOENT", "there is no such folder"],
  ["ENOTDIR", "a part of the path is not a folder"],
  ["ENOSPC", "the disk is full"],
  ["EDQUOT", "the disk quota is used up"],
]);
