// Compares a version of the SDK with what this server serves: methods it can call, callbacks it answers, events it knows.
// Usage: npm run sdk:diff -- <folder of an installed SDK package> [...]. Exits with 1 when a public method is missing.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const require = createRequire(import.meta.url);

/** Reads the names out of the JavaScript and the types of a published SDK. */
export function readSdk(folder) {
  const dist = join(folder, "dist");
  const code = sources(dist, (name) => name.endsWith(".js") && !name.startsWith("cjs"));
  const types = readFileSync(join(dist, "generated", "session-events.d.ts"), "utf8");
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const request = /\.sendRequest\(\s*"([\w.]+)"/g;
  // The SDK keeps methods that its users cannot call in factories of their own.
  const internalParts = code.match(/^function createInternal\w+\([\s\S]*?^}/gm) ?? [];
  const methods = names(
    internalParts.reduce((rest, part) => rest.replace(part, ""), code),
    request,
  );
  return {
    version,
    methods,
    internal: names(internalParts.join("\n"), request).filter((name) => !methods.includes(name)),
    callbacks: names(code, /\.on(?:Request|Notification)\(\s*"([\w.]+)"/g),
    events: names(
      (types.match(/^export interface \w+Event {[\s\S]*?^}/gm) ?? []).join("\n"),
      /^ {4}type: "([\w.]+)"/gm,
    ),
  };
}

/**
 * Reads the names that this server has. An event counts when a source file outside `src/protocol` names it, and a callback
 * when one outside `src/sdk` does. Names written as templates, such as `${kind}.completed`, count too.
 */
export async function readServer() {
  const within = (folder) => sources(join(root, "src"), (name) => name.endsWith(".ts") && !name.startsWith(folder));
  const [emitters, callers] = [within("protocol"), within("sdk")];
  const { methods, eventDefinitions } = await tables();
  return {
    methods: new Set(Object.keys(methods)),
    internal: new Set(Object.keys(methods)),
    callbacks: { has: (name) => isNamed(callers, name) },
    events: { has: (name) => eventDefinitions.some(({ type }) => type === name) && isNamed(emitters, name) },
  };
}

/** Lists everything of the SDK that the server lacks. */
export function missing(sdk, server) {
  const lacking = (kind) => sdk[kind].filter((name) => !server[kind].has(name));
  return Object.fromEntries(kinds.map((kind) => [kind, lacking(kind)]));
}

const kinds = ["methods", "internal", "callbacks", "events"];

function isNamed(code, name) {
  const [first, last] = [name.slice(0, name.indexOf(".")), name.slice(name.lastIndexOf("."))];
  return [`"${name}"`, `\`${first}.\${`, `}${last}\``].some((written) => code.includes(written));
}

/** The server's tables, built into a temporary module: Node 20 reads no TypeScript. */
async function tables() {
  const folder = mkdtempSync(join(tmpdir(), "troupe-sdk-diff-"));
  const outfile = join(folder, "tables.mjs");
  try {
    await require("esbuild").build({
      stdin: {
        contents: `export { methods } from "./src/server/methods/list.ts";
          export { eventDefinitions } from "./src/protocol/event.ts";`,
        resolveDir: root,
        loader: "ts",
      },
      ...{ outfile, bundle: true, platform: "node", format: "esm", target: "node20.19", logLevel: "error" },
      loader: { ".md": "text" },
      external: ["@photostructure/sqlite", "@vscode/ripgrep", "@lydell/node-pty", "@modelcontextprotocol/client"],
      define: { __TROUPE_VERSION__: '"0"' },
      banner: {
        js: `import { createRequire } from "node:module"; const require = createRequire(${JSON.stringify(import.meta.url)});`,
      },
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function sources(folder, isMeant) {
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isMeant);
  return found.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
}

function names(code, pattern) {
  return [...new Set([...code.matchAll(pattern)].map(([, name]) => name))].sort();
}

async function main(folders) {
  if (folders.length === 0) {
    console.error("Usage: npm run sdk:diff -- <folder of an installed SDK package> [...]");
    return 2;
  }
  const server = await readServer();
  let isComplete = true;
  for (const folder of folders) {
    const sdk = readSdk(resolve(folder));
    const lacks = missing(sdk, server);
    console.log(`SDK ${sdk.version}`);
    for (const kind of kinds) {
      console.log(`  ${kind}: ${sdk[kind].length - lacks[kind].length} of ${sdk[kind].length} served`);
      for (const name of lacks[kind]) console.log(`    missing ${name}`);
    }
    isComplete &&= lacks.methods.length === 0;
  }
  return isComplete ? 0 : 1;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await main(process.argv.slice(2));
}
