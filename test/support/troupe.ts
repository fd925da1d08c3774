import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface TroupeOptions {
  readonly cwd: string;
  readonly home: string;
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Another build of the program. */
  readonly program?: string;
  /** Called with the child as soon as stderr or stdout shows this text. */
  readonly when?: { readonly text: string; readonly react: (child: ReturnType<typeof spawn>) => void };
}

const bin = resolve("bin/troupe.js");

/** Runs the built command line as a person would, with nothing configured but what the test says. */
export function troupe(args: readonly string[], options: TroupeOptions): Promise<Finished> {
  const child = spawn(process.execPath, [options.program ?? bin, ...args], {
    cwd: options.cwd,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: options.home,
      TROUPE_HOME: options.home,
      TROUPE_NO_DISCOVERY: "1",
      ...options.environment,
    },
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  child.stdin?.end(options.stdin);
  let stdout = "";
  let stderr = "";
  let reacted = false;
  const look = (): void => {
    if (reacted || !options.when || !`${stdout}${stderr}`.includes(options.when.text)) return;
    reacted = true;
    options.when.react(child);
  };
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
    look();
  });
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
    look();
  });
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("close", (code) => done({ code, stdout, stderr }));
  });
}

/** Writes a faux script and returns the value for `--model`. */
export function script(folder: string, steps: readonly object[], more: object = {}): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `script-${Math.random().toString(36).slice(2)}.json`);
  writeFileSync(path, JSON.stringify({ steps, ...more }));
  return `faux:${path}`;
}
