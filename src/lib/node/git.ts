/**
 * Runs read-only git commands in an untrusted repository. Its configuration can name programs to run in a dozen
 * settings, and none of them runs. Our overrides take precedence over every file of the repository. Drivers with custom
 * names are looked up first and disabled. Nothing is ever fetched.
 */
import type { ChildProcess } from "node:child_process";
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { childEnvironment } from "./child-environment.ts";
import { gitArguments } from "./git-commands.ts";
import { smallText } from "./small-file.ts";

export interface GitOptions {
  readonly cwd: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** Limit for stdout and for stderr, each. */
  readonly maxBytes?: number;
}

export interface GitReply {
  /** Null if git did not exit normally. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Set if we ended it; `stdout` is then incomplete. */
  readonly stopped?: "time" | "size" | "abort";
}

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;
/** A process may exit while another one holds its output open. The wait for that is bounded. */
const CLOSE_WAIT_MS = 200;
const MAX_DRIVERS = 1000;
const PATH = "/usr/bin:/bin:/usr/sbin:/sbin";
/** Never uses PATH: a workspace could put its own program there. A program inside the workspace is always refused. */
export function gitPrograms(environment: NodeJS.ProcessEnv, home: string): readonly string[] {
  const { CONDA_PREFIX: conda } = environment;
  return [
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/run/current-system/sw/bin",
    "/nix/var/nix/profiles/default/bin",
    join(home, ".nix-profile/bin"),
    ...(conda && isAbsolute(conda) ? [join(conda, "bin")] : []),
    "/opt/conda/bin",
  ].map((folder) => join(folder, "git"));
}

/** Runs a read-only git command. Throws only for a command that is not read-only; other failures are in the reply. */
export async function runGit(args: readonly string[], options: GitOptions): Promise<GitReply> {
  const wanted = gitArguments(args);
  if (!wanted.ok) throw new Error(wanted.error);
  return runNeutral(wanted.args, options);
}

export interface NeutralOptions extends GitOptions {
  /** Takes precedence over our own variables: repository, index, identity. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** The data needed to start git in one checkout so that it starts no other program. */
export interface Neutral {
  readonly program: string;
  readonly overrides: readonly Override[];
  /** The repository's settings, including our overrides. */
  readonly settings: readonly Override[];
}

/**
 * Runs any command, with everything that could start a program disabled. For `git-write.ts`; other code uses `runGit`.
 * For several commands in the same checkout, call `neutralise` once and pass its result.
 */
export async function runNeutral(args: readonly string[], options: NeutralOptions, known?: Neutral): Promise<GitReply> {
  const neutral = known ?? (await neutralise(options));
  return "program" in neutral ? start({ ...neutral, args, options }) : neutral;
}

/** Returns a reply with the error if git cannot be made safe here. */
export async function neutralise(options: NeutralOptions): Promise<Neutral | GitReply> {
  const program = findGit(options.cwd);
  if (program === undefined)
    return failed(127, `git was not found in ${gitPrograms(process.env, homedir()).map(dirname).join(", ")}`);

  const quiet = { ...options, input: "" };
  const listing = await start({
    program,
    args: ["config", "--null", "--list"],
    overrides: fixedOverrides,
    options: quiet,
  });
  if (listing.code !== 0) return { ...listing, stdout: "" }; // unknown settings cannot be disabled
  const settings = parseSettings(listing.stdout);
  const drivers = driverOverrides(settings);
  if (drivers.length > MAX_DRIVERS) return failed(128, "the configuration of this repository names too many drivers");
  const overrides = [...fixedOverrides, ...drivers];
  const worktree = settings.find(([name]) => name === "core.worktree");
  if (worktree && !(await ownsWorktree({ program, overrides, options: quiet }))) {
    return failed(128, "core.worktree of this repository points to a folder that does not belong to it");
  }
  return { program, overrides, settings };
}

type Override = readonly [name: string, value: string];

const fixedOverrides: readonly Override[] = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["core.pager", "cat"],
  ["core.sshCommand", "false"],
  ["core.gitProxy", "none"],
  ["core.askPass", "false"],
  ["core.editor", "false"],
  ["core.attributesFile", "/dev/null"],
  ["core.alternateRefsCommand", "false"],
  ["sequence.editor", "false"],
  ["diff.external", ""],
  ["diff.submodule", "short"],
  ["diff.ignoreSubmodules", "all"],
  ["interactive.diffFilter", "cat"],
  ["credential.helper", ""],
  ["gpg.program", "false"],
  ["gpg.openpgp.program", "false"],
  ["gpg.x509.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gpg.ssh.defaultKeyCommand", "false"],
  ["log.showSignature", "false"],
  ["status.submoduleSummary", "false"],
  ["submodule.recurse", "false"],
  ["safe.bareRepository", "explicit"],
  ["protocol.allow", "never"],
  ["protocol.ext.allow", "never"],
  ["maintenance.auto", "false"],
  ["gc.auto", "0"],
];

/** Drivers that files select by attributes, and hooks by name: their names are only in the configuration. */
function driverOverrides(settings: readonly Override[]): Override[] {
  const overrides = new Map<string, string>();
  for (const [name] of settings) {
    const [, section = "", driver = "", key = ""] = /^([a-z]+)\.(.*)\.([a-z0-9-]+)$/s.exec(name) ?? [];
    if (section === "filter") {
      for (const part of ["clean", "smudge", "process"]) overrides.set(`filter.${driver}.${part}`, "");
      overrides.set(`filter.${driver}.required`, "false");
    }
    if (section === "merge" && key === "driver") overrides.set(name, "false");
    if (section === "hook") overrides.set(`hook.${driver}.enabled`, "false");
    if (section === "remote") overrides.set(`remote.${driver}.promisor`, "false");
    if (section === "credential" && key === "helper") overrides.set(name, "");
  }
  return [...overrides];
}

/** Parses the output of `git config --null --list`: name, line break, value. */
function parseSettings(listing: string): Override[] {
  return listing
    .split("\0")
    .filter((entry) => entry !== "")
    .map((entry) => {
      const end = entry.indexOf("\n");
      return end < 0 ? [entry, ""] : [entry.slice(0, end), entry.slice(end + 1)];
    });
}

/** A folder named as the work tree must confirm it, as every submodule and linked work tree does. */
async function ownsWorktree(what: Omit<GitRequest, "args">): Promise<boolean> {
  const reply = await start({ ...what, args: ["rev-parse", "--show-toplevel", "--absolute-git-dir"] });
  const [top = "", gitFolder = ""] = reply.stdout.split("\n");
  if (reply.code !== 0 || top === "" || gitFolder === "") return false;
  const entry = join(top, ".git");
  try {
    if (statSync(entry).isDirectory()) return (await realpath(entry)) === (await realpath(gitFolder));
    const [, named = ""] = /^gitdir: (.+)$/m.exec(smallText(entry, 5000) ?? "") ?? [];
    return (await realpath(resolve(top, named))) === (await realpath(gitFolder));
  } catch {
    return false;
  }
}

/**
 * Returns variables for an agent's commands, with which git starts no program that the repository around `cwd` names.
 * Diffs by external programs become plain ones. If that cannot be guaranteed, git finds no repository.
 */
export async function neutralVariables(cwd: string): Promise<Record<string, string>> {
  const neutral = await neutralise({ cwd });
  if (!("program" in neutral)) return { GIT_DIR: "/dev/null" };
  const { program, overrides, settings } = neutral;
  const top = await start({ program, overrides, args: ["rev-parse", "--show-toplevel"], options: { cwd } });
  const file = ["--file", join(top.stdout.trim() || cwd, ".gitmodules")];
  const listing = await start({ program, overrides, args: ["config", ...file, "--null", "--list"], options: { cwd } });
  const modules = listing.code === 0 ? parseSettings(listing.stdout) : [];
  const own = overrides.filter(([name]) => name !== "diff.external");
  const more = [...diffOverrides(settings), ...submoduleOverrides([...settings, ...modules])];
  return { ...QUIET, ...configVariables([...own, ...more]) };
}

const PLAIN_DIFF = 'f() { diff -u -- "$2" "$5"; true; }; f';

function diffOverrides(settings: readonly Override[]): Override[] {
  return settings.flatMap(([name, value]): Override[] => {
    if (value === "") return [];
    if (name === "diff.external" || /^diff\..+\.command$/s.test(name)) return [[name, PLAIN_DIFF]];
    return /^diff\..+\.textconv$/s.test(name) ? [[name, "cat"]] : [];
  });
}

/** Git runs a separate process for a submodule, which does not know our overrides. */
function submoduleOverrides(settings: readonly Override[]): Override[] {
  const names = settings.flatMap(([name]) => /^submodule\.(.+)\.[a-z]+$/is.exec(name)?.[1] ?? []);
  return [...new Set(names)].map((name) => [`submodule.${name}.ignore`, "all"]);
}

interface GitRequest {
  readonly program: string;
  readonly args: readonly string[];
  readonly overrides: readonly Override[];
  readonly options: NeutralOptions;
}

async function start({ program, args, overrides, options }: GitRequest): Promise<GitReply> {
  const { cwd, signal, timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES, input = "" } = options;
  if (signal?.aborted) return { code: null, stdout: "", stderr: "", stopped: "abort" };
  const { spawn } = await import("node:child_process");
  const env = { ...gitEnvironment(overrides), ...options.environment };
  return new Promise((done) => {
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.on("error", () => undefined); // it may exit without reading all of it
    child.stdin.end(input);
    let stopped: GitReply["stopped"];
    const stop = (reason: NonNullable<GitReply["stopped"]>): void => {
      stopped ??= reason;
      killGroup(child);
    };
    const onAbort = (): void => stop("abort");
    const timer = setTimeout(() => stop("time"), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    const stdout = collect(child.stdout, maxBytes, () => stop("size"));
    const stderr = collect(child.stderr, maxBytes, () => stop("size"));
    const finish = (code: number | null, trouble = ""): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      const end = stopped === undefined ? { code } : { code: null, stopped };
      done({ ...end, stdout: stdout.text(), stderr: stderr.text() + trouble });
    };
    child.once("error", (error) => finish(null, error.message));
    child.once("close", (code) => finish(code));
    // A process that inherited the pipes may hold them forever. Git's output is in them, and may still be unread on a
    // busy machine.
    const letGo = (before: number): void => {
      const now = stdout.size() + stderr.size();
      if (now > before && stopped === undefined) return void setImmediate(letGo, now);
      child.stdout.destroy();
      child.stderr.destroy();
    };
    child.once("exit", () => {
      setTimeout(() => setImmediate(letGo, -1), CLOSE_WAIT_MS).unref();
    });
  });
}

const QUIET = {
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_NO_LAZY_FETCH: "1",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_PAGER: "cat",
  GIT_EDITOR: "false",
  GIT_SEQUENCE_EDITOR: "false",
  GIT_SSH_COMMAND: "false",
  GIT_ASKPASS: "false",
  SSH_ASKPASS: "false",
} as const;

/** Returns an environment without our secrets and without git's own variables, plus our overrides. */
function gitEnvironment(overrides: readonly Override[]): Record<string, string> {
  return {
    ...childEnvironment(process.env),
    PATH,
    LC_ALL: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    ...QUIET,
    ...configVariables(overrides),
  };
}

function configVariables(overrides: readonly Override[]): Record<string, string> {
  const entries = overrides.flatMap(([name, value], index): [string, string][] => [
    [`GIT_CONFIG_KEY_${index}`, name],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(overrides.length), ...Object.fromEntries(entries) };
}

/** Stores the first bytes, and reports if there are more. */
function collect(
  stream: NodeJS.ReadableStream,
  maxBytes: number,
  onTooMuch: () => void,
): { text(): string /** Total number of received bytes. */; size(): number } {
  const chunks: Buffer[] = [];
  let room = maxBytes;
  stream.on("data", (chunk: Buffer) => {
    if (room > 0) chunks.push(chunk.subarray(0, room));
    room -= chunk.length;
    if (room < 0) onTooMuch();
  });
  stream.on("error", () => undefined); // a broken pipe has no more output
  return { text: () => Buffer.concat(chunks).toString("utf8"), size: () => maxBytes - room };
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    child.kill("SIGKILL"); // the process group has already ended
  }
}

function findGit(workspace: string): string | undefined {
  return gitPrograms(process.env, homedir()).find((path) => {
    try {
      const real = realpathSync(path);
      accessSync(real, constants.X_OK);
      return statSync(real).isFile() && !isInside(real, workspace);
    } catch {
      return false;
    }
  });
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way) && resolve(folder) !== "/";
}

const failed = (code: number, stderr: string): GitReply => ({ code, stdout: "", stderr });
