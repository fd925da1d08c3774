/** Bundles `host-program.ts`, so that a test can start it as a process of its own and kill it. */
import { symlinkSync } from "node:fs";
import { build } from "esbuild";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";

/** Returns a folder with the program `host.mjs`. The caller removes the folder. */
export async function hostFolder(): Promise<TempFolder> {
  const folder = await tempFolder();
  await build({
    entryPoints: ["test/shell/host-program.ts"],
    outfile: folder.at("host.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["@lydell/node-pty"],
  });
  symlinkSync(`${process.cwd()}/node_modules`, folder.at("node_modules")); // for the optional package
  return folder;
}
