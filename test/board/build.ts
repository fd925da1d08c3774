import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

/** Makes one file of a program of this folder. */
export async function buildProgram(entry: string, outfile: string, how: { counted?: boolean } = {}): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    loader: { ".md": "text" },
    plugins: [sqlite(how.counted === true), yaml],
  });
}

/** What cannot be bundled is loaded from where it lies; counted, it has a layer of ours around it. */
const sqlite = (counted: boolean): Plugin => ({
  name: "sqlite",
  setup(making) {
    const path = createRequire(import.meta.url).resolve("@photostructure/sqlite");
    const layer = fileURLToPath(new URL("./counted-sqlite.ts", import.meta.url));
    making.onResolve({ filter: /^@photostructure\/sqlite$/ }, ({ importer }) =>
      counted && importer !== layer ? { path: layer } : { path, external: true },
    );
  },
});

/** A package that requires at run time; loaded from where it lies too. */
const yaml: Plugin = {
  name: "yaml",
  setup(making) {
    const path = createRequire(import.meta.url).resolve("yaml");
    making.onResolve({ filter: /^yaml$/ }, () => ({ path, external: true }));
  },
};

export interface Ended {
  readonly output: string;
  readonly errors: string;
  readonly signal: NodeJS.Signals | null;
}

export function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (_, signal) => resolve({ output, errors, signal }));
  });
}
