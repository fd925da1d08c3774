// Builds what the package ships: the command line in packs (see pack.mjs) with V8's code cache beside them, so that a
// start parses nothing; the library entries as ES modules; and their types. `npm ci` runs it through `dependencies`, `npm pack` through `prepack`.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildOptions } from "./build-options.mjs";
import { derivedModules, puttingDerived, toolSchemas } from "./derive.mjs";
import { licenceTexts } from "./licences.mjs";
import { laterPack, modulesBehind, startPack } from "./pack.mjs";
import { tryOut } from "./try-out.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);

let esbuild;
try {
  esbuild = require("esbuild");
} catch {
  console.error("build: esbuild is not installed (production install?): keeping dist/ as it is");
  process.exit(0);
}

const shared = buildOptions(root);

rmSync(join(root, "dist"), { recursive: true, force: true });
mkdirSync(join(root, "dist"), { recursive: true });

const tools = { esbuild, root, options: shared };
const derived = await derivedModules(tools);

await esbuild.build({
  ...shared,
  plugins: [puttingDerived(derived, root)],
  entryPoints: {
    index: "src/runtime/index.ts",
    protocol: "src/protocol/index.ts",
    sdk: "src/sdk/index.ts",
    server: "src/server/index.ts",
    testing: "src/testing/index.ts",
  },
  outdir: "dist/lib",
  format: "esm",
  splitting: true,
  external: [...shared.external, "zod", "yaml", "eventsource-parser"],
});

if (process.env.TROUPE_SKIP_TYPES !== "1") {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const types = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
  if (types.status !== 0) process.exit(types.status ?? 1);
}

await buildPage();

const launcher = join(root, "bin", "troupe.js");
/** What an agent does in an ordinary turn. */
const calls = [
  ["create", { path: "a.txt", file_text: "one\n" }],
  ["view", { path: "a.txt" }],
  ["edit", { path: "a.txt", old_str: "one", new_str: "two" }],
  ["grep", { pattern: "two" }],
  ["bash", { command: "true", description: "nothing" }],
];
chmodSync(launcher, 0o755);
writeFileSync(join(root, "dist", "licences.txt"), licenceTexts);
await buildCommandLine();
const page = spawnSync(process.execPath, [launcher, "help", "--man"], { cwd: root, encoding: "utf8" });
if (page.status === 0) writeFileSync(join(root, "dist", "troupe.1"), page.stdout);
else console.error(`build: no man page: ${page.stderr}`);

/**
 * Modules lie in packs by when they are needed: for the first request of a prompt, for a turn with tools, and for all the
 * rest. Which, is found out by doing that; a build that cannot try it out ships one pack, which only costs time.
 */
async function buildCommandLine() {
  const entry = "src/cli/main.ts";
  const schemas = JSON.stringify(await toolSchemas(tools));
  const bodies = new Map([["src/tools/derived-schemas.ts", `exports.derivedSchemas=new Map(${schemas});`]]);
  for (const [name, exports] of derived) bodies.set(name, `Object.assign(exports,${JSON.stringify(exports)});`);
  const modules = await modulesBehind(entry, { ...tools, bodies });
  const names = [...modules.keys()];
  writePacks([names]);
  const answered = await tryOut(launcher, { trace: true, calls: [] });
  const isNeeded = (name) => answered.has(name) || name.startsWith("src/model/wire/");
  if (answered.size > 0) {
    const worked = await tryOut(launcher, { trace: true, calls });
    const start = names.filter(isNeeded);
    const work = names.filter((name) => !isNeeded(name) && worked.has(name));
    const rest = names.filter((name) => !isNeeded(name) && !worked.has(name));
    writePacks([start, work, rest]);
  }
  await tryOut(launcher, { trace: false, calls });
  // Without a cache of the last pack, which is by far the largest, a command that needs it takes twice as long to start.
  await tryOut(launcher, { trace: false, calls: [], scripted: true });
  await esbuild.build({
    ...shared,
    entryPoints: ["src/terminal/first-frame.ts"],
    outfile: "dist/cli/first-frame.cjs",
    format: "cjs",
    minify: true,
  });

  function writePacks([start, ...others]) {
    const folder = join(root, "dist", "cli");
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    const later = others.map((list) => {
      const source = laterPack(modules, list);
      // The name tells them apart, so that what belongs to one build is never taken for a part of another.
      const name = `later-${createHash("sha256").update(source).digest("hex").slice(0, 8)}`;
      writeFileSync(join(folder, `${name}.cjs`), source);
      return name;
    });
    writeFileSync(join(folder, "start.cjs"), startPack(modules, { names: start, entry, later }));
  }
}

/** The page of the dashboard, and the same page as one script for sessions that are exported as a file. */
async function buildPage() {
  const page = {
    absWorkingDir: root,
    bundle: true,
    platform: "browser",
    target: ["chrome111", "firefox115", "safari16.4"],
    format: "esm",
    minify: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
    charset: "utf8",
    define: { "process.env.NODE_ENV": '"production"' },
  };
  await esbuild.build({
    ...page,
    entryPoints: { main: "src/web/page/main.tsx", style: "src/web/page/style.css" },
    splitting: true,
    chunkNames: "chunk-[hash]",
    outdir: "dist/web",
    plugins: [oneFileFor("@speed-highlight/core", "./highlight.js")],
  });
  await esbuild.build({ ...page, entryPoints: ["@speed-highlight/core"], outfile: "dist/web/highlight.js" });
  await esbuild.build({
    ...page,
    entryPoints: ["src/web/page/exported.tsx"],
    format: "iife",
    outfile: "dist/web/exported.js",
  });
  copyFileSync(join(root, "src/web/page/index.html"), join(root, "dist/web/index.html"));
}

/** A package whose many small chunks become one file, which is loaded when it is needed. */
function oneFileFor(name, path) {
  return {
    name: "one-file",
    setup: (build) => build.onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path, external: true })),
  };
}
