// `npm run docs`: writes the generated pages of docs/reference. With --check it only reports stale pages and exits 1.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(root, "node_modules", ".cache-docs-"));
try {
  const outfile = join(folder, "pages.mjs");
  await build({
    absWorkingDir: root,
    entryPoints: ["scripts/reference/pages.ts"],
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    loader: { ".md": "text" },
    define: { __TROUPE_VERSION__: '""' },
    outfile,
    logLevel: "warning",
  });
  const { referencePages } = await import(pathToFileURL(outfile).href);
  const stale = referencePages().filter(({ path, text }) => text !== contentOf(join(root, path)));
  if (process.argv.includes("--check")) {
    for (const { path } of stale) console.error(`${path} is stale. Run: npm run docs`);
    process.exitCode = stale.length > 0 ? 1 : 0;
  } else {
    for (const { path, text } of stale) writeFileSync(join(root, path), text);
    console.log(stale.length === 0 ? "Nothing has changed." : stale.map(({ path }) => `wrote ${path}`).join("\n"));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function contentOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
