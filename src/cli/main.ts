/**
 * The command line. This folder parses arguments, runs one command (`commands/`) and prints its result (`output/`).
 * This file loads only what the command needs, prints errors in one line, and converts every outcome to an exit code.
 */

import { nearest, sanitise } from "../lib/text.ts";
import { ModelError } from "../model/model-error.ts";
import { TroupeError, withHint } from "../protocol/errors.ts";
import { protectStateRoot, stateRoot } from "../runtime/home.ts";
import { version } from "../runtime/version.ts";
import { type Arguments, parse, usage, wantsJson } from "./args.ts";
import { interactiveCommand, isInteractive } from "./commands/interactive.ts";
import { containErrors } from "./contain-errors.ts";
import { type ExitCode, exitCodeOfError, exitCodeOfModelError, exitCodes } from "./exit-codes.ts";
import { helpText } from "./help.ts";
import type { Launcher } from "./launcher.ts";
import { write } from "./output/output.ts";
import { say, sayLines } from "./output/say.ts";
import { pluginFolders } from "./plugin-folders.ts";
import { onInterrupt } from "./signals.ts";

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
  if (given.has("help")) return print(helpText(version));
  if (given.has("version")) return print(`${version}\n`);
  enterFolder(given);
  checkServing(given);
  const repaired = protectStateRoot(stateRoot(process.env), process.env);
  if (isInteractive(given)) return interactiveCommand(given, launcher, repaired);
  if (repaired !== undefined) say(repaired);
  if (given.has("acp")) return (await import("./commands/acp.ts")).acpCommand(given, launcher);
  if (given.has("headless")) return (await import("./commands/headless.ts")).headlessCommand(given, launcher);

  const [word] = given.words;
  switch (word) {
    case "sessions":
      return (await import("./commands/sessions.ts")).sessionsCommand(given);
    case "search":
      return (await import("./commands/search.ts")).searchCommand(given, given.words.slice(1));
    case "models":
      return (await import("./commands/models.ts")).modelsCommand(given, launcher);
    case "rewind":
      return (await import("./commands/rewind.ts")).rewindCommand(given);
    case "fork":
      return (await import("./commands/rewind.ts")).forkCommand(given);
    case "diff":
      return (await import("./commands/diff.ts")).diffCommand(given);
    case "undo":
      return (await import("./commands/undo.ts")).undoCommand(given);
    case "memory":
      return (await import("./commands/memory.ts")).memoryCommand(given);
    case "board":
      return (await import("./commands/board.ts")).boardCommand(given, launcher);
    case "trust":
      return (await import("./commands/trust.ts")).trustCommand(given);
    case "mcp":
      if (given.words[1] === "serve") return (await import("./commands/mcp-serve.ts")).mcpServeCommand(given, launcher);
      return mcp(given);
    case "agents":
      return agents(given);
    case "tasks":
      return (await import("./commands/tasks.ts")).tasksCommand(given, launcher);
    case "inbox":
      return (await import("./commands/inbox.ts")).inboxCommand(given, launcher);
    case "web":
      return (await import("./commands/web.ts")).webCommand(given, launcher);
    case "help":
      return print(helpText(version));
    case undefined:
    case "-":
      return (await import("./prompt-mode.ts")).promptCommand(given, launcher);
    default:
      throw unknownCommand(given);
  }
}

/** Throws for server flags without a server, and for a prompt with a server, whose clients send the prompts. */
function checkServing(given: Arguments): void {
  const [server, other] = ["acp", "headless"].filter((name) => given.has(name));
  if (other) throw usage(`Use either --${server} or --${other}.`);
  if (server && given.text("prompt") !== undefined)
    throw usage(`--${server} takes prompts from its clients: leave out --prompt.`);
  if (server === "acp" && given.text("port") !== undefined)
    throw usage("--acp serves over stdin and stdout: leave out --port.");
  const alone = ["stdio", "port"].find((name) => !server && !(name === "port" && given.words[0] === "web") && (given.has(name) || given.text(name) !== undefined));
  if (alone) throw usage(`--${alone} is for a server: add --headless.`);
}

async function mcp(given: Arguments): Promise<ExitCode> {
  const [{ mcpCommand }, { openMcpAdministration }] = await Promise.all([
    import("./commands/mcp.ts"),
    import("../runtime/mcp/mcp-admin.ts"),
  ]);
  const environment = process.env;
  const { administration, close } = await openMcpAdministration({ cwd: process.cwd(), environment });
  const stop = new AbortController();
  const removeInterrupt = onInterrupt(() => stop.abort());
  const printed: Promise<void>[] = [];
  const isData = wantsJson(given) && !process.stdout.isTTY;
  const print = (text: string): void => void printed.push(write(isData ? text : sanitise(text)));
  try {
    return await mcpCommand(given, { administration, environment, signal: stop.signal, print, say });
  } finally {
    await Promise.all(printed);
    removeInterrupt();
    await close();
  }
}

async function agents(given: Arguments): Promise<ExitCode> {
  const [{ agentsCommand }, { openAgentsAdministration }] = await Promise.all([
    import("./commands/agents.ts"),
    import("../runtime/agents/agents-admin.ts"),
  ]);
  const { sources, disk } = await openAgentsAdministration({
    cwd: process.cwd(),
    environment: process.env,
    trustFolder: given.has("trust-folder"),
    pluginDirectories: pluginFolders(given),
  });
  const isData = wantsJson(given) && !process.stdout.isTTY;
  return agentsCommand(given, { sources, disk, say, print: (text) => write(isData ? text : sanitise(text)) });
}

function unknownCommand(given: Arguments): TroupeError {
  const words = given.words.join(" ");
  if (given.text("prompt") !== undefined) return usage(`What is "${words}"? Put the whole prompt in quotes.`);
  const close = nearest(given.words[0] ?? "", [
    "sessions",
    "search",
    "tasks",
    "inbox",
    "agents",
    "models",
    "diff",
    "undo",
    "rewind",
    "fork",
    "trust",
    "mcp",
    "memory",
    "board",
    "help",
  ]);
  if (close) return usage(`Unknown command "${given.words[0]}". Did you mean troupe ${close}?`);
  return usage(`Unknown command "${given.words[0]}". To ask something, use -p: troupe -p "${words}"`);
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
    if (error.kind !== "interrupted") say(withHint(error.message, error.hint)); // the user knows about the interruption
    return exitCodeOfError(error.kind);
  }
  if (error instanceof ModelError) {
    say(withHint(error.message, error.hint));
    return exitCodeOfModelError(error.kind);
  }
  const trouble = fileTrouble(error);
  if (trouble !== undefined) {
    say(trouble);
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
  ["ENOTDIR", "a part of the path is no folder"],
  ["ENOSPC", "the disk is full"],
  ["EDQUOT", "the disk quota is used up"],
]);
