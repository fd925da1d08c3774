// What the build works out once, so that a start need not: the JSON schemas of built-in tools, and modules of plain data.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

/** What modules named `*.derived.ts` come to: their exports, by the name of the module. They must be plain data. */
export async function derivedModules(tools) {
  const files = readdirSync(join(tools.root, "src"), { recursive: true, encoding: "utf8" });
  const names = files.filter((file) => file.endsWith(".derived.ts")).map((file) => `src/${file.replaceAll("\\", "/")}`);
  const found = new Map();
  for (const name of names) {
    const exports = await evaluated(name, tools);
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(exports)), exports)) throw new Error(`${name} is not plain data`);
    found.set(name, exports);
  }
  return found;
}

/** Entries of a map from the id of a `fixed` input to its JSON schema. */
export async function toolSchemas(tools) {
  let asked;
  globalThis[RECORDER] = {
    get(id) {
      asked = id;
    },
  };
  const lists = [];
  for (const name of ["src/tools/builtin.ts", "src/tools/coordination/worker-tools.ts"]) {
    lists.push(...Object.values(await evaluated(name, { ...tools, plugins: [recording] })));
  }
  const found = new Map();
  for (const entry of lists.flat()) {
    const tool = typeof entry === "function" ? made(entry) : entry;
    asked = undefined;
    const parameters = tool?.parameters;
    if (asked !== undefined) found.set(asked, parameters);
  }
  return [...found];
}

const RECORDER = Symbol.for("troupe.build.schemas");
const recording = {
  name: "recording",
  setup: (build) =>
    build.onLoad({ filter: /\/derived-schemas\.ts$/ }, () => ({
      contents: `export const derivedSchemas = globalThis[Symbol.for("troupe.build.schemas")];`,
    })),
};

/** A tool that needs something to be made from is made from nothing; one that cannot be is derived at the start. */
function made(make) {
  const nothing = new Proxy({}, { get: () => () => [] });
  for (const given of [undefined, nothing]) {
    try {
      return make(given);
    } catch {
      // then with the other
    }
  }
  return undefined;
}

/** For esbuild: puts what they come to in the place of such modules. */
export function puttingDerived(derived, root) {
  return {
    name: "derived",
    setup: (build) =>
      build.onLoad({ filter: /\.derived\.ts$/ }, ({ path }) => {
        const [, exports] = [...derived].find(([name]) => join(root, name) === path) ?? [];
        return {
          contents: Object.entries(exports)
            .map(([each, value]) => `export const ${each} = ${JSON.stringify(value)};`)
            .join("\n"),
        };
      }),
  };
}

async function evaluated(name, { esbuild, options, plugins = [] }) {
  const folder = mkdtempSync(join(tmpdir(), "troupe-derive-"));
  try {
    const { outputFiles } = await esbuild.build({
      ...options,
      entryPoints: [name],
      plugins,
      format: "esm",
      banner: { js: `import{createRequire as $from}from"node:module";const require=$from(import.meta.url);` },
      write: false,
    });
    const file = join(folder, "module.mjs");
    writeFileSync(file, outputFiles[0].contents);
    return { ...(await import(pathToFileURL(file).href)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
