// A copy of the built program in which some modules have other source. The modules lie in the packs as functions (see
// pack.mjs), so a changed one is transformed and put in the place of the original: milliseconds instead of a build.
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import * as esbuild from "esbuild";
import { buildOptions } from "./build-options.mjs";
import { definitionOf } from "./pack.mjs";

/**
 * Copies the parts of a checkout that `weaken` needs. The build must be of the same source. Both functions expect a
 * folder that does not exist.
 */
export function copyProgram(root, folder) {
  for (const name of ["src", "bin", join("dist", "cli"), "package.json"])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
}

/**
 * Makes a program like the one in `copy`, with these texts replaced in its source. Throws when a source does not contain
 * the text, or the packs do not hold the module as it is in the source.
 */
export async function weaken(copy, folder, changes) {
  // Hard links: a changed file is replaced, never written to.
  const copied = spawnSync("cp", ["-al", copy, folder], { encoding: "utf8" });
  if (copied.status !== 0) throw new Error(`cannot copy the program: ${copied.stderr}`);
  const tools = { esbuild, options: buildOptions(copy) };
  for (const { file, from, to } of changes) {
    const before = readFileSync(join(folder, file), "utf8");
    if (!before.includes(from)) throw new Error(`${file} does not contain: ${from}`);
    const after = before.replaceAll(from, () => to);
    replaceFile(join(folder, file), after);
    replaceModule(folder, {
      file,
      before: await definitionOf(file, before, tools),
      after: await definitionOf(file, after, tools),
    });
  }
}

function replaceModule(folder, { file, before, after }) {
  if (before === after) throw new Error(`${file}: the change makes no difference`);
  const packs = join(folder, "dist", "cli");
  const names = readdirSync(packs);
  for (const name of names.filter((one) => one.endsWith(".cjs"))) {
    const pack = readFileSync(join(packs, name), "utf8");
    if (!pack.includes(before)) continue;
    replaceFile(
      join(packs, name),
      pack.replace(before, () => after),
    );
    // V8 takes the code cache of another source with the same length for its own.
    const isCache = (one) => one.endsWith(".cache") && one.startsWith(`${basename(name, ".cjs")}.`);
    for (const cache of names.filter(isCache)) rmSync(join(packs, cache), { force: true });
    return;
  }
  throw new Error(`${file} is not in the build as it is in the source; build again`);
}

function replaceFile(path, text) {
  rmSync(path);
  writeFileSync(path, text);
}
