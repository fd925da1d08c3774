import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Bundles the program into the folder and returns the path of what node can run. */
export async function buildChild(folder: string): Promise<string> {
  const outfile = join(folder, "child.mjs");
  const entry = fileURLToPath(new URL("./child-program.ts", import.meta.url));
  await build({ entryPoints: [entry], outfile, bundle: true, platform: "node", format: "esm", external: ["yaml"] });
  return outfile;
}

export interface Ended {
  readonly lines: string[];
  readonly signal: string | null;
  readonly code: number | null;
  readonly errors: string;
}

export function runChild(program: string, ...values: string[]): Promise<Ended> {
  return startChild(program, ...values).ended;
}

export interface Child {
  readonly input: Writable;
  /** The first so many lines the child says, once they are there; all there are when it ends before. */
  lines(count: number): Promise<string[]>;
  readonly ended: Promise<Ended>;
}

export function startChild(program: string, ...values: string[]): Child {
  const child = spawn(process.execPath, [program, ...values], { stdio: ["pipe", "pipe", "pipe"], timeout: 60_000 });
  let output = "";
  let errors = "";
  child.stdin.on("error", () => undefined);
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const lines = (): string[] => output.split("\n").slice(0, -1);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ lines: lines(), signal, code, errors }));
  });
  return {
    input: child.stdin,
    ended,
    async lines(count) {
      while (lines().length < count && child.exitCode === null && child.signalCode === null) {
        await Promise.race([once(child.stdout, "data"), ended]);
      }
      return lines();
    },
  };
}
