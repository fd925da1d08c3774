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
  external: ["@photostructure/sqlite", "@vscode/ripgrep", "@lydell/node-pty", "@modelcontextprotocol/client"],
  legalComments: "none",
  logLevel: "warning",
  charset: "ascii", // so that the launcher may read it as latin1, which is four times as fast
};

rmSync(join(root, "dist"), { recursive: true, force: true });
mkdirSync(join(root, "dist"), { recursive: true });

await esbuild.build({
  ...shared,
  entryPoints: ["src/cli/main.ts"],
  outfile: "dist/troupe.cjs",
  format: "cjs",
  // Code that runs from a script object cannot import; it can require.
  supported: { "dynamic-import": false },
  minifySyntax: true,
  minifyWhitespace: true,
  define: { ...shared.define, "import.meta.url": "__troupe_url" },
  banner: { js: "const __troupe_url=require('node:url').pathToFileURL(__filename).href;" },
});
escapeNonAscii(join(root, "dist", "troupe.cjs"));

/** esbuild leaves regular expressions as they are written; an escape means the same in them, in strings and templates. */
function escapeNonAscii(file) {
  const source = readFileSync(file, "utf8");
  const escaped = source.replace(
    /[^\u0000-\u007f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  writeFileSync(file, escaped);
}

await esbuild.build({
  ...shared,
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

chmodSync(join(root, "bin", "troupe.js"), 0o755);
await warmCodeCache();

/**
 * Runs a prompt with a tool call against a model server of our own, so that the code cache holds the functions that a
 * prompt needs. Without it everything works, only slower: so nothing here can fail a build.
 */
async function warmCodeCache() {
  const { createServer } = await import("node:http");
  const { spawn } = await import("node:child_process");
  const { mkdtempSync } = await import("node:fs");
  const { tmpdir } = await import("node:os");
  const home = mkdtempSync(join(tmpdir(), "troupe-build-"));
  const call = { index: 0, id: "c", function: { name: "view", arguments: JSON.stringify({ path: "package.json" }) } };
  const chunk = (delta, finish_reason) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(++asked === 1 ? chunk({ tool_calls: [call] }, "tool_calls") : chunk({ content: "ready" }, "stop"));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  const env = {
    PATH: process.env.PATH,
    TROUPE_HOME: home,
    TROUPE_BASE_URL: `http://127.0.0.1:${port}/v1`,
    TROUPE_MODEL: "warm",
    TROUPE_WRITE_CODE_CACHE: "1",
  };
  const child = spawn(process.execPath, [join(root, "bin", "troupe.js"), "-s", "-p", "warm"], {
    cwd: root,
    env,
    stdio: ["ignore", "ignore", "inherit"],
    timeout: 20_000,
  });
  await new Promise((resolve) => child.once("close", resolve));
  server.close();
  rmSync(home, { recursive: true, force: true });
}
