/** Bundles the program that plays cases, with the sandbox as it is or without one protection. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { WITHOUT } from "./without.ts";

/** `root`: the checkout. Throws when the source does not contain what is to be replaced. */
export async function buildProgram(root: string, outfile: string, without?: string): Promise<void> {
  const changes = without === undefined ? [] : WITHOUT[without];
  if (changes === undefined) throw new Error(`There is no ${without}. Known are: ${Object.keys(WITHOUT).join(", ")}.`);
  const plugin: Plugin = {
    name: "without",
    setup({ onLoad }) {
      onLoad({ filter: /src\/tools\/shell\/.*\.ts$/ }, ({ path }) => {
        let contents = readFileSync(path, "utf8");
        for (const { file, from, to } of changes) {
          if (path !== join(root, file)) continue;
          if (!contents.includes(from)) throw new Error(`${file} does not contain: ${from}`);
          contents = contents.replaceAll(from, to);
        }
        return { contents, loader: "ts" };
      });
    },
  };
  await build({
    entryPoints: [join(root, "test/fuzz/fuzz-program.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    loader: { ".md": "text" },
    logLevel: "warning",
    plugins: [plugin],
  });
}
