// Builds what the package ships: one CommonJS file for the command line (with V8's code cache beside it, so that a
// start parses nothing), the library entries as ES modules, and their types. `npm ci` runs it through `prepare`.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);

let esbuild;
try {
  esbuild = require("esbuild");
} catch {
  console.error("build: esbuild is not installed (production install?): keeping dist/ as it is");
  process.exit(0);
}

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const shared = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node20.19",
  loader: { ".md": "text" },
  define: { __TROUPE_VERSION__: JSON.stringify(version) },
  external: ["@photostructure/sqlite", "@vscode/ripgrep"],
  legalComments: "none",
  logLevel: "warning",
  charset: "utf8",
};

rmSync(join(root, "dist"), { recursive: true, force: true });
mkdirSync(join(root, "dist"), { recursive: true });

await esbuild.build({
  ...shared,
  entryPoints: ["src/cli/main.ts"],
  outfile: "dist/troupe.cjs",
  format: "cjs",
  minifySyntax: true,
  minifyWhitespace: true,
  define: { ...shared.define, "import.meta.url": "__troupe_url" },
  banner: { js: "const __troupe_url=require('node:url').pathToFileURL(__filename).href;" },
});

await esbuild.build({
  ...shared,
  entryPoints: {
    index: "src/runtime/index.ts",
    protocol: "src/protocol/index.ts",
    testing: "src/testing/index.ts",
  },
  outdir: "dist/lib",
  format: "esm",
  splitting: true,
  external: [...shared.external, "zod", "yaml", "eventsource-parser"],
});

if (process.env.TROUPE_SKIP_TYPES !== "1") {
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const types = spawnSync(tsc, ["-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
  if (types.status !== 0) process.exit(types.status ?? 1);
}

chmodSync(join(root, "bin", "troupe.js"), 0o755);
writeFileSync(join(root, "dist", "version.json"), JSON.stringify({ version }));
// Runs the code once so that the cache holds compiled functions, not only top-level code.
spawnSync(process.execPath, [join(root, "bin", "troupe.js"), "--help"], {
  env: { ...process.env, TROUPE_WRITE_CODE_CACHE: "1" },
  stdio: ["ignore", "ignore", "inherit"],
});
