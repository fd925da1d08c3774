/** Runs ripgrep without a shell, without a configuration file, with a minimal environment and a time limit. */
import type { ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { ToolError } from "../tool-error.ts";

export interface RipgrepOptions {
  /** The program to run (default: the packaged one). */
  readonly executable?: string;
  readonly timeoutMs?: number;
}

export interface RipgrepSearch {
  readonly options: RipgrepOptions;
  readonly arguments: readonly string[];
  /** Patterns of paths that are never opened, each with a leading `!`. */
  readonly excluded?: readonly string[] | undefined;
  readonly cwd: string;
  /**
   * Also searches folders of installed packages below `cwd`. Most searches do not want them, even without a .gitignore.
   */
  readonly includesPackages?: boolean;
  /** A file descriptor to search instead of files. */
  readonly stdin?: number;
  readonly separator: "\n" | "\0";
  readonly signal: AbortSignal;
  /** Ends the search and keeps the results so far. */
  readonly timeLimit: AbortSignal;
  /** Called for every line; return `false` to stop. */
  onLine(line: string): boolean;
}

export type RipgrepEnd = "done" | "enough" | "timeout";

const SEARCH_TIMEOUT_MS = 30_000;
/** A search ends itself and keeps its results. The loop's own timeout must be longer. */
export const TOOL_TIMEOUT_MS = SEARCH_TIMEOUT_MS + 15_000;
const MAX_PENDING_CHARACTERS = 64 * 1024;
const MAX_ERROR_CHARACTERS = 4096;
const MAX_ARGUMENT_CHARACTERS = 16 * 1024;
const PASSED_ENVIRONMENT = ["PATH", "HOME", "LANG"];
const ALWAYS = ["--no-config", "--no-follow", "--no-messages", "--color=never", "--sort=path", "--hidden"];
/** Must be last: a later glob overrides an earlier one, and nothing may include this folder again. */
const NEVER_SEARCHED = "--glob=!.git";

const PACKAGES = "--glob=!node_modules/";

/** Returns whether a pattern asks for files of installed packages. */
export const namesPackages = (pattern = ""): boolean => pattern.includes("node_modules");

/** One time limit for all searches of a call. */
export function timeLimit(options: RipgrepOptions): AbortSignal {
  return AbortSignal.timeout(options.timeoutMs ?? SEARCH_TIMEOUT_MS);
}

/** Throws when ripgrep rejects its arguments or the signal is aborted. No match is not an error. */
export async function ripgrep(search: RipgrepSearch): Promise<RipgrepEnd> {
  search.signal.throwIfAborted();
  for (const argument of [...search.arguments, ...(search.excluded ?? [])]) checkArgument(argument);
  const { spawn } = await import("node:child_process"); // loaded on first use: it slows every start
  const child = spawn(
    search.options.executable ?? packagedExecutable(),
    [
      ...[...ALWAYS, ...search.arguments, ...(search.includesPackages ? [] : [PACKAGES]), NEVER_SEARCHED],
      // ripgrep applies these after all other patterns, so that none can include the files again.
      ...(search.excluded ?? []).map((pattern) => `--iglob=${pattern}`),
      ...["--", search.stdin === undefined ? "." : "-"],
    ],
    {
      cwd: search.cwd,
      env: passedEnvironment(),
      stdio: [search.stdin ?? "ignore", "pipe", "pipe"],
      // Its own process group, so that one signal ends it with all its children.
      detached: true,
    },
  );
  const { end, errorText } = await follow(child, search);
  search.signal.throwIfAborted();
  if (end === "done" && child.signalCode !== null) throw new ToolError(`The search was killed (${child.signalCode}).`);
  if (end === "done" && child.exitCode !== 0 && child.exitCode !== 1 && errorText !== "") {
    throw new ToolError(`The search failed: ${errorText.replace(/^rg: /, "").trim()}`);
  }
  return end;
}

function follow(child: ChildProcess, search: RipgrepSearch): Promise<{ end: RipgrepEnd; errorText: string }> {
  return new Promise((resolve, reject) => {
    let end: RipgrepEnd = "done";
    let errorText = "";
    const stop = (reason: RipgrepEnd): void => {
      end = reason;
      child.stdout?.destroy();
      child.stderr?.destroy();
      killGroup(child);
    };
    const onAbort = (): void => stop("enough");
    const onTimeout = (): void => stop("timeout");
    search.signal.addEventListener("abort", onAbort);
    search.timeLimit.addEventListener("abort", onTimeout);
    if (search.timeLimit.aborted) onTimeout();
    if (search.signal.aborted) onAbort();
    const lines = lineSplitter(search.separator, (line) => end !== "done" || search.onLine(line));
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (end === "done" && !lines.push(text)) stop("enough");
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      errorText = (errorText + text).slice(0, MAX_ERROR_CHARACTERS);
    });
    const settle = (): void => {
      search.signal.removeEventListener("abort", onAbort);
      search.timeLimit.removeEventListener("abort", onTimeout);
    };
    child.on("error", (cause) => {
      settle();
      reject(new ToolError(`ripgrep could not be started: ${cause.message}`, { cause }));
    });
    child.on("close", () => {
      settle();
      if (end === "done" && !lines.finish()) end = "enough";
      resolve({ end, errorText });
    });
  });
}

function lineSplitter(separator: string, onLine: (line: string) => boolean) {
  let pending = "";
  return {
    push(text: string): boolean {
      const parts = (pending + text).split(separator);
      pending = (parts.pop() ?? "").slice(0, MAX_PENDING_CHARACTERS);
      return parts.every(onLine);
    },
    finish: () => pending === "" || onLine(pending),
  };
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL");
  }
}

function checkArgument(argument: string): void {
  if (argument.includes("\0")) throw new ToolError("A search cannot contain a NUL character.");
  if (argument.length > MAX_ARGUMENT_CHARACTERS) {
    throw new ToolError(`A search pattern can have at most ${MAX_ARGUMENT_CHARACTERS} characters.`);
  }
}

function passedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(PASSED_ENVIRONMENT.map((name) => [name, process.env[name]]));
}

/**
 * Resolved on the first search, so that a system without the packaged program can still do everything else. Uses the
 * path in the package, so that no code of the package runs.
 */
function packagedExecutable(): string {
  const program = process.platform === "win32" ? "rg.exe" : "rg";
  try {
    const ripgrep = createRequire(createRequire(import.meta.url).resolve("@vscode/ripgrep"));
    return ripgrep.resolve(`@vscode/ripgrep-${process.platform}-${process.arch}/bin/${program}`);
  } catch (cause) {
    const remedy = "Reinstall without leaving out optional dependencies.";
    throw new ToolError(`ripgrep is not installed for ${process.platform}-${process.arch}. ${remedy}`, { cause });
  }
}
