/** Part of the source as a program of its own, for what the command line cannot be made to do 40,000 times. */
import { join } from "node:path";
import { build } from "esbuild";
import type { Stage } from "./stage.ts";

/** `source` imports from `./` as if it stood in `src`. */
export async function bundled({ root, folder }: Stage, source: string): Promise<string> {
  const outfile = join(folder, `bundled-${source.length}.mjs`);
  await build({
    stdin: { contents: source, resolveDir: join(root, "src"), loader: "ts" },
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    loader: { ".md": "text" },
    logLevel: "silent",
  });
  return outfile;
}
