/** Where an attack happens: a workspace, a folder outside, a home, and the built program with a scripted model. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

export interface Event {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** All of both. */
  readonly said: string;
}

export interface Prompted extends Finished {
  readonly events: readonly Event[];
  /** The decisions, in order. */
  readonly decisions: readonly Decision[];
  readonly results: readonly CallResult[];
}

interface Decision {
  readonly toolName: string;
  readonly kind: string;
  readonly decision: "allowed" | "denied";
  readonly by: string;
  readonly reason: string;
}

interface CallResult {
  readonly success: boolean;
  readonly result?: { readonly content: string };
  readonly error?: { readonly message: string; readonly code?: string };
}

export interface RunOptions {
  readonly cwd?: string;
  /** Undefined takes a variable away. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Stands before the program: another sandbox. */
  readonly before?: readonly string[];
  /** Gives it a terminal, where there is a program that can. */
  readonly terminal?: boolean;
  /** For node itself. */
  readonly nodeFlags?: readonly string[];
}

export interface PromptOptions extends RunOptions {
  readonly flags?: readonly string[];
  readonly steps: readonly object[];
  readonly format?: "json" | "text";
}

const TIME_LIMIT_MS = 90_000;
const TERMINAL = "/usr/bin/script";
const MAX_OUTPUT = 64 * 1024 * 1024;

export class Stage {
  readonly guards: "on" | "off";
  /** The checkout whose program is attacked. */
  readonly root: string;
  readonly folder: string;
  readonly workspace: string;
  readonly outside: string;
  readonly home: string;
  readonly state: string;
  readonly #children = new Set<ChildProcess>();
  #scripts = 0;

  constructor(options: { guards: "on" | "off"; root: string; base: string; id: string }) {
    this.guards = options.guards;
    this.root = options.root;
    this.folder = realpathSync(mkdtempSync(join(options.base, `${options.id}-`)));
    this.workspace = join(this.folder, "workspace");
    this.outside = join(this.folder, "outside");
    this.home = join(this.folder, "home");
    // Not under its usual name, which is protected wherever it stands.
    this.state = join(this.home, "state");
    for (const path of [this.workspace, this.outside, this.state]) mkdirSync(path, { recursive: true, mode: 0o700 });
  }

  get guarded(): boolean {
    return this.guards === "on";
  }

  /** Files of the workspace, by relative path. */
  files(tree: Readonly<Record<string, string>>): void {
    for (const [name, content] of Object.entries(tree)) write(join(this.workspace, name), content);
  }

  has(...path: readonly string[]): boolean {
    return existsSync(join(this.workspace, ...path));
  }

  /** Plays the steps to the program and reads back every event. */
  async prompt(options: PromptOptions): Promise<Prompted> {
    const script = join(this.folder, `script-${++this.#scripts}.json`);
    write(script, JSON.stringify({ steps: options.steps, otherwise: { say: "done" } }));
    const format = options.format ?? "json";
    const args = ["-p", "go", "--model", `faux:${script}`, "--output-format", format, ...(options.flags ?? [])];
    const finished = await this.troupe(args, options);
    const events = format === "json" ? parseEvents(finished.stdout) : this.logged();
    const of = <T>(type: string): T[] => events.filter((event) => event.type === type).map(({ data }) => data as T);
    return { ...finished, events, decisions: of("troupe.permission"), results: of("tool.execution_complete") };
  }

  troupe(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    const { before = [], nodeFlags = [] } = options;
    const words = [...before, process.execPath, ...nodeFlags, join(this.root, "bin", "troupe.js"), ...args];
    return this.spawned(options.terminal && existsSync(TERMINAL) ? inTerminal(words) : words, {
      ...options,
      environment: {
        PATH: process.env.PATH ?? "/usr/bin:/bin",
        HOME: this.home,
        TROUPE_HOME: this.state,
        TROUPE_NO_DISCOVERY: "1",
        ...options.environment,
      },
    });
  }

  /** Any program, with exactly this environment. */
  spawned(command: readonly string[], options: RunOptions = {}): Promise<Finished> {
    const [program = "", ...args] = command;
    const child = spawn(program, args, {
      cwd: options.cwd ?? this.workspace,
      env: { ...options.environment },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: TIME_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    this.#children.add(child);
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (chunk: string) => {
        if (texts[name].length < MAX_OUTPUT) texts[name] += chunk;
      });
    }
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        this.#children.delete(child);
        resolve({ code, ...texts, said: texts.stdout + texts.stderr });
      });
    });
  }

  /** Events of all sessions, as they were stored. */
  logged(): Event[] {
    const sessions = join(this.state, "session-state");
    const ids = existsSync(sessions) ? readdirSync(sessions) : [];
    return ids.flatMap((id) => {
      const log = join(sessions, id, "events.jsonl");
      return existsSync(log) ? parseEvents(readFileSync(log, "utf8")) : [];
    });
  }

  /** Files under a folder whose bytes hold one of the texts, with the text. */
  hits(folder: string, texts: readonly string[]): string[] {
    return filesBelow(folder).flatMap((path) => {
      const bytes = readFileSync(path);
      return texts.filter((text) => bytes.includes(text)).map((text) => `${text} in ${path.slice(folder.length)}`);
    });
  }

  close(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    try {
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    } catch {
      // Someone still writes there; the folder around it goes at the end.
    }
  }
}

export const call = (name: string, given: object): object => ({ call: { name, arguments: given } });
export const bash = (command: string, more: object = {}): object =>
  call("bash", { command, description: "a step", ...more });

export function write(path: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode });
}

export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function inTerminal(words: readonly string[]): string[] {
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return [TERMINAL, "-qec", quoted.join(" "), "/dev/null"];
}

function parseEvents(lines: string): Event[] {
  return lines
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Event);
}
