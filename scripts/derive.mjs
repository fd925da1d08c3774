// What the build works out once, so that a start need not: the JSON schemas of built-in tools, and modules of plain data.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const SCHEMAS = "src/tools/derived-schemas.ts";

/** Bodies for modules that are replaced by what they come to, by their name: `*.derived.ts` and the schemas of tools. */
export async function derivedBodies(names, tools) {
  const bodies = new Map([[SCHEMAS, `exports.derivedSchemas=new Map(${JSON.stringify(await toolSchemas(tools))});`]]);
  for (const name of names.filter((each) => each.endsWith(".derived.ts"))) {
    const exports = Object.entries(await evaluated(name, tools));
    for (const [each, value] of exports) {
      if (!isDeepStrictEqual(JSON.parse(JSON.stringify(value)), value))
        throw new Error(`${name}: ${each} is no plain data`);
    }
    bodies.set(name, exports.map(([each, value]) => `exports.${each}=${JSON.stringify(value)};`).join(""));
  }
  return bodies;
}

/** Entries of a map from the id of a `fixed` input to its schema. */
async function toolSchemas(tools) {
  let asked;
  globalThis[RECORDER] = {
    get(id) {
      asked = id;
    },
  };
  const lists = await evaluated("src/tools/builtin.ts", { ...tools, plugins: [recording] });
  const found = new Map();
  for (const entry of Object.values(lists).flat()) {
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

async function evaluated(name, { esbuild, options, plugins = [] }) {
  const folder = mkdtempSync(join(tmpdir(), "troupe-derive-"));
  try {
    const { outputFiles } = await esbuild.build({
      ...options,
      entryPoints: [name],
      plugins,
      format: "esm",
      write: false,
    });
    const file = join(folder, "module.mjs");
    writeFileSync(file, outputFiles[0].contents);
    return { ...(await import(pathToFileURL(file).href)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
