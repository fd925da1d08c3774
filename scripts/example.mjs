// `npm run example <name>`: compiles one program of examples/ for the oldest Node and runs it against the build.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Imports of `troupe/…` and of packages, as file URLs, so that the program runs from any folder. */
const resolved = {
  name: "resolved",
  setup: (bundle) =>
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (kind === "entry-point" || path.startsWith("node:")) return undefined;
      const [, entry] = /^troupe\/(\w+)$/.exec(path) ?? [];
      const file = entry ? join(root, "dist", "lib", `${entry}.js`) : createRequire(join(root, "x.js")).resolve(path);
      return { path: pathToFileURL(file).href, external: true };
    }),
};

/** Compiles the example into the folder. Returns the file to run. */
export async function compileExample(name, folder) {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    absWorkingDir: root,
    entryPoints: [join("examples", `${name}.ts`)],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.19",
    plugins: [resolved],
    outfile,
    logLevel: "warning",
  });
  return outfile;
}

export const exampleNames = readdirSync(join(root, "examples"))
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replace(/\.ts$/, ""));

/** Examples of several programs: they need no compiling. */
const folderNames = ["cluster"];

async function main([name, ...args]) {
  const names = [...exampleNames, ...folderNames];
  if (!names.includes(name)) {
    if (name !== undefined) console.error(`There is no example "${name}".`);
    console.log(`Examples:\n${names.map((each) => `  npm run example ${each}`).join("\n")}`);
    process.exitCode = name === undefined ? 0 : 2;
    return;
  }
  if (!existsSync(join(root, "dist", "lib", "sdk.js"))) throw new Error("There is no build. Run: npm run build");
  const folder = mkdtempSync(join(tmpdir(), "troupe-example-"));
  const isFolder = folderNames.includes(name);
  const file = isFolder ? join(root, "examples", name, "run.mjs") : await compileExample(name, folder);
  const child = spawn(process.execPath, [file, ...args], { stdio: "inherit" });
  // Ctrl+C reaches the example, too. It may have to clean up.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("exit", (code) => {
    rmSync(folder, { recursive: true, force: true });
    process.exitCode = code ?? 1;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
