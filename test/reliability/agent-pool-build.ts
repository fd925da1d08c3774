import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { build, type Plugin } from "esbuild";

/** A change to the source of the program under test: a defect that a checker has to find. */
export interface Defect {
  readonly file: RegExp;
  readonly from: string;
  readonly to: string;
}

/** Makes one file of a program, with a defect in it where asked. */
export async function buildProgram(entry: string, outfile: string, defect?: Defect): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    // What the build works out beforehand is worked out here when the program starts.
    banner: {
      js: 'import { createRequire as requiring } from "node:module"; const require = requiring(import.meta.url);',
    },
    loader: { ".md": "text" },
    plugins: defect ? [seeded(defect)] : [],
  });
}

function seeded({ file, from, to }: Defect): Plugin {
  return {
    name: "seeded-defect",
    setup(making) {
      making.onLoad({ filter: file }, ({ path }) => {
        const source = readFileSync(path, "utf8");
        if (!source.includes(from)) throw new Error(`${path} no longer has: ${from}`);
        return { contents: source.replace(from, to), loader: "ts" };
      });
    },
  };
}

export interface Ended {
  readonly lines: readonly string[];
  readonly finished: boolean;
  readonly errors: string;
}

/** Runs it to its end, or kills it after so long. */
export function runProgram(
  program: string,
  args: readonly string[],
  more: { readonly killAfterMs?: number; readonly nodeArguments?: readonly string[] } = {},
): Promise<Ended> {
  const { killAfterMs, nodeArguments = [] } = more;
  const child = spawn(process.execPath, [...nodeArguments, program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  if (killAfterMs !== undefined) child.stdout.once("data", () => setTimeout(() => child.kill("SIGKILL"), killAfterMs));
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => {
      const lines = output.split("\n").slice(0, -1);
      resolve({ lines: lines.filter((line) => line !== "finished"), finished: lines.includes("finished"), errors });
    });
  });
}
