import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { version } from "../../runtime/version.ts";
import { type Check, type Finding, reasonOf } from "./finding.ts";

/** Checks the version of troupe and Node, the package's folder, the code cache and the native packages. */
export const install: Check = async ({ launcher }) => {
  const script = process.argv[1];
  const root = script === undefined ? undefined : dirname(dirname(realpathSync(script)));
  return [
    {
      id: "install.version",
      status: "ok",
      summary: `troupe ${version} on Node ${process.versions.node}, ${process.platform} ${process.arch}`,
    },
    { id: "install.place", status: "ok", summary: `installed in ${root ?? "an unknown folder"}` },
    ...(root === undefined ? [] : [codeCache(join(root, "dist", "cli"))]),
    await ripgrep(launcher.importModule),
  ];
};

function codeCache(folder: string): Finding {
  const id = "install.code-cache";
  const file = join(folder, `start.${process.version}-${process.arch}.cache`);
  if (existsSync(file)) return { id, status: "ok", summary: "code cache: in place, start-up is fast" };
  if (isWritable(folder)) return { id, status: "ok", summary: "code cache: the next prompt writes it" };
  return {
    id,
    status: "warning",
    summary: `code cache: missing for this Node, and ${folder} is not writable, so every start is slower`,
    remedy: "Run one prompt as the owner of that folder.",
  };
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The search tools of agents need ripgrep, which is a package with a program in it. */
async function ripgrep(importModule: (specifier: string) => Promise<unknown>): Promise<Finding> {
  const id = "install.ripgrep";
  const remedy = "Install troupe again, with optional dependencies: npm install --include=optional";
  try {
    const { rgPath } = (await importModule("@vscode/ripgrep")) as { rgPath: string };
    if (existsSync(rgPath)) return { id, status: "ok", summary: "ripgrep: found" };
    return { id, status: "problem", summary: `ripgrep: there is no ${rgPath}`, remedy };
  } catch (error) {
    return { id, status: "problem", summary: `ripgrep: ${reasonOf(error)}`, remedy };
  }
}
