/** Plays one attack in the sandbox and looks afterwards, from the host, at what it achieved. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createSandbox, type PreparedSandbox, type SandboxOptions } from "../../src/tools/shell/sandbox/sandbox.ts";
import { ToolError } from "../../src/tools/tool-error.ts";
import { ATTACK_SCRIPT, type Attack, type Swap } from "./attack-script.ts";
import { contents, differences, namesIn, type ProtectedView, protectedView, raw, runGit } from "./host-view.ts";

/** Paths are latin-1 texts of their bytes. */
export interface World {
  readonly base: string;
  /** The workspace; further roots after the first. */
  readonly roots: readonly string[];
  readonly home: string;
  readonly state: string;
  /** Must stay as it is. */
  readonly untouched: readonly string[];
  /** Texts that no command may print. */
  readonly canaries: readonly string[];
  readonly options?: Partial<SandboxOptions>;
  /** Folders that commands may change and that belong to no workspace. */
  readonly writable?: readonly string[];
}

export interface Outcome {
  readonly problems: readonly string[];
  /** The sandbox ran nothing, for this reason. */
  readonly refused?: string;
  /** Set when there are problems. */
  readonly details?: {
    /** Everything in the workspaces before the attack. */
    readonly entries: readonly string[];
    readonly plan: AttackPlan;
    /** Notes of the clean-up. */
    readonly notes: readonly string[];
    /** The end of the attack's output. */
    readonly output: string;
  };
}

export type AttackPlan = Pick<Attack, "protected" | "steps" | "outside"> & { readonly swap?: readonly Swap[] };

const TIMEOUT_MS = 20_000;
const MAX_OUTPUT = 4000;
const utf8 = (path: string): string => raw(path).toString("utf8");

/** A folder outside the temporary folders, which every sandbox hides. */
export function workFolder(): string {
  const parent = process.getuid?.() === 0 ? "/var/cache" : join(homedir(), ".cache");
  fs.mkdirSync(parent, { recursive: true });
  const folder = fs.mkdtempSync(join(fs.realpathSync(parent), "troupe-fuzz-"));
  fs.chmodSync(folder, 0o755);
  return folder;
}

/** Removes a folder with everything in it, also what cannot be listed. */
export function removeFolder(folder: string): void {
  try {
    fs.rmSync(folder, { recursive: true, force: true });
  } catch {
    spawnSync("chmod", ["-R", "u+rwX", folder]);
    spawnSync("rm", ["-rf", folder]);
  }
}

export async function play(world: World, plan: AttackPlan, index: string): Promise<Outcome> {
  const trace = join(world.base, "trace");
  fs.mkdirSync(trace, { recursive: true });
  const attack: Attack = {
    ...plan,
    swap: [],
    read: [...world.roots, world.home, world.state],
    trace: `touch ${trace}/run-$$`,
    index,
  };
  const skip = new Set([world.state, world.home].filter((path) => isIn(path, world.roots)));
  const ownFiles = new Set([`${world.state}/sandbox`, ...(world.writable ?? [])]);
  const outside = (): string[] => world.untouched.flatMap((path) => contents(path, ownFiles));
  const before = { views: world.roots.map((root) => protectedView(root, skip)), outside: outside() };
  const entries = world.roots.flatMap((root) => contents(root));
  const { output, notes, refused } = await attackWorld(world, attack, plan.swap ?? []);
  const problems = world.canaries.filter((canary) => output.includes(canary)).map((canary) => `${canary} was read`);
  const now = outside();
  for (const line of changed(before.outside, now).filter((one) => !isTraceOfSwap(one, plan)))
    problems.push(`outside: ${line}`);
  for (const [number, view] of before.views.entries()) {
    problems.push(...problemsIn(world, view, { number, skip, trace }));
  }
  // While names are swapped, bubblewrap or the check of the mounts may refuse the start.
  const mustEnd = refused === undefined && (plan.swap ?? []).length === 0;
  if (mustEnd && !output.includes("attacked\n")) problems.push(`the attack did not end: ${output.slice(-300)}`);
  return {
    problems,
    ...(refused !== undefined && { refused }),
    ...(problems.length > 0 && { details: { entries, plan, notes, output: output.slice(-MAX_OUTPUT) } }),
  };
}

/**
 * When a swap misdirects a mount, bubblewrap may create the empty folder for the next mount in the wrong place before the
 * check of the mounts refuses the start.
 */
const isTraceOfSwap = (line: string, { swap = [] }: AttackPlan): boolean =>
  swap.length > 0 && /^\+ .*\/(hooks|modules) folder 755$/.test(line);

function problemsIn(
  world: World,
  before: ProtectedView,
  { number, skip, trace }: { number: number; skip: ReadonlySet<string>; trace: string },
): string[] {
  const after = protectedView(world.roots[number] ?? "", skip);
  const problems = differences(before, after);
  for (const folder of after.worktrees.slice(0, 30)) {
    runGit(folder, trace);
    const traces = namesIn(trace);
    if (traces.length === 0) continue;
    problems.push(`git status ran a program in ${utf8(folder)}`);
    for (const name of traces) fs.rmSync(join(trace, name));
  }
  return problems;
}

const isIn = (path: string, folders: readonly string[]): boolean =>
  folders.some((folder) => path === folder || path.startsWith(`${folder}/`));

function changed(before: readonly string[], after: readonly string[]): string[] {
  const [was, is] = [new Set(before), new Set(after)];
  return [
    ...before.filter((line) => !is.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !was.has(line)).map((line) => `+ ${line}`),
  ];
}

async function attackWorld(
  world: World,
  attack: Attack,
  swap: readonly Swap[],
): Promise<{ output: string; notes: readonly string[]; refused?: string }> {
  const sandbox = createSandbox({
    mode: "required",
    stateRoot: utf8(world.state),
    home: utf8(world.home),
    ...world.options,
  });
  const request = {
    workspace: [...world.roots, ...(world.writable ?? [])].map(utf8),
    cwd: utf8(world.roots[0] ?? ""),
    ownTerminal: false,
    detached: false,
  };
  const started: Running[] = [];
  const notes: string[] = [];
  try {
    if (swap.length > 0) {
      const swapper = start(await sandbox.prepare(request), { ...attack, swap });
      started.push(swapper);
      await swapper.ready;
    }
    const attacker = start(await sandbox.prepare(request), attack);
    started.push(attacker);
    await attacker.ended;
    return { output: attacker.output(), notes };
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return { output: "", notes, refused: error.message };
  } finally {
    for (const running of started.reverse()) notes.push(...(await running.end()));
    await sandbox.close();
  }
}

interface Running {
  output(): string;
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
  /** Ends it and returns the notes of the clean-up. */
  end(): Promise<string[]>;
}

function start(prepared: PreparedSandbox, attack: Attack): Running {
  if (prepared.kind !== "sandboxed") throw new Error("there is no sandbox");
  const [file = "", ...rest] = [
    ...prepared.launcher,
    "python3",
    "-I",
    "-S",
    "-c",
    ATTACK_SCRIPT,
    JSON.stringify(attack),
  ];
  const child: ChildProcess = spawn(file, rest, {
    cwd: "/",
    env: { PATH: process.env.PATH, LANG: "C.UTF-8", ...prepared.environment },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  let output = "";
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ready = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("latin1").on("data", (text: string) => {
        output += text;
        if (output.includes("ready\n")) resolve();
      });
    }
    void ended.then(resolve);
  });
  return {
    output: () => output,
    ready,
    ended,
    async end() {
      child.kill("SIGKILL");
      await ended;
      const note = await prepared.release();
      return note === undefined ? [] : [note];
    },
  };
}

/** The index of a repository with one file, which makes git look at files, and so ask a file monitor. */
export function indexOfRepository(folder: string): string {
  const path = join(folder, "template");
  fs.mkdirSync(path);
  fs.writeFileSync(join(path, "file"), "x");
  const git = (...args: string[]): void => void spawnSync("git", args, { cwd: path, stdio: "ignore" });
  git("init", "-q");
  git("add", "file");
  const index = fs.readFileSync(join(path, ".git", "index"), "base64");
  removeFolder(path);
  return index;
}

/** Writes files, given by relative path. Text that begins with "-> " makes a link, undefined a folder. */
export function plant(root: string, entries: Readonly<Record<string, string | undefined>>): void {
  for (const [name, content] of Object.entries(entries)) {
    const path = `${root}/${name}`;
    const folder = content === undefined ? path : path.slice(0, path.lastIndexOf("/"));
    fs.mkdirSync(raw(folder), { recursive: true });
    if (content === undefined) continue;
    if (content.startsWith("-> ")) fs.symlinkSync(raw(content.slice(3)), raw(path));
    else fs.writeFileSync(raw(path), raw(content));
  }
}

export const REPOSITORY = {
  HEAD: "ref: refs/heads/main\n",
  config: "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
  objects: undefined,
  refs: undefined,
} as const;

export const below = (folder: string, entries: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(entries).map(([name, content]) => [`${folder}/${name}`, content]));
