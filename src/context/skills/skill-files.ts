/** Lists the files beside a SKILL.md, up to a limit. */
import * as fs from "node:fs";
import { extname, join } from "node:path";
import { isInside } from "../../lib/node/paths.ts";
import { realPath } from "../../lib/node/real-path.ts";
import { readFolder } from "./read-inside.ts";

export interface SkillFiles {
  /** Paths relative to the folder, with `/`, sorted. Links are listed, but linked folders are not entered. */
  readonly files: readonly string[];
  /** Files that can be run, by their extension, name, mode or kind. */
  readonly scripts: readonly string[];
  /** False when the limit was reached, so that nothing is known about the rest. */
  readonly complete: boolean;
  /** A link that leads out of the location. */
  readonly leavesBy?: string;
}

/** Shared by all skills of one search, to bound the total. */
export interface FileBudget {
  left: number;
}

const MAX_FILES = 200;
const MAX_DEPTH = 8;
const EXECUTE_BITS = 0o111;
const SCRIPT_EXTENSIONS = new Set(
  (
    ".sh .bash .zsh .fish .ksh .csh .command .py .pyw .pyz .rb .pl .pm .php .lua .tcl .awk .r .jl .groovy .kts " +
    ".js .mjs .cjs .jsx .ts .mts .cts .tsx .ps1 .psm1 .psd1 .bat .cmd .vbs .vbe .wsf .exe .com .msi .scr .dll .so " +
    ".dylib .node .wasm .jar .class .scpt .applescript .appimage .run .bin"
  ).split(" "),
);
const SCRIPT_NAMES = new Set(["makefile", "gnumakefile", "justfile", "rakefile", "package.json", "dockerfile"]);

/** `folder` and `root` are real paths; `folder` is inside `root`. */
export function lookAtFiles(
  folder: string,
  { root, budget, maxFiles = MAX_FILES }: { root: string; budget: FileBudget; maxFiles?: number },
): SkillFiles {
  const seen: { files: string[]; scripts: string[]; complete: boolean; leavesBy?: string } = {
    files: [],
    scripts: [],
    complete: true,
  };
  let looked = 0;
  const open: { path: string; depth: number }[] = [{ path: "", depth: 0 }];
  for (let next = open.shift(); next !== undefined && seen.complete; next = open.shift()) {
    const room = Math.min(maxFiles - looked, budget.left);
    const read = room > 0 ? readFolder(join(folder, next.path), room) : undefined;
    if (!read?.complete) seen.complete = false;
    looked += read?.entries.length ?? 0;
    budget.left -= read?.entries.length ?? 0;
    for (const { name, kind } of read?.entries ?? []) {
      const path = next.path === "" ? name : `${next.path}/${name}`;
      if (kind !== "folder") note(path, kind, seen, { folder, root });
      else if (next.depth < MAX_DEPTH) open.push({ path, depth: next.depth + 1 });
      else seen.complete = false;
    }
  }
  return seen;
}

/** Returns true if a file can be run, or if that is unknown. */
export function holdsScripts(files: SkillFiles): boolean {
  return files.scripts.length > 0 || !files.complete;
}

function note(
  path: string,
  kind: "file" | "link" | "special",
  seen: { files: string[]; scripts: string[]; leavesBy?: string },
  at: { folder: string; root: string },
): void {
  const whole = join(at.folder, path);
  if (kind === "link" && !isInside(realPath(whole) ?? "", [at.root])) seen.leavesBy = path;
  seen.files.push(path);
  if (kind === "special" || isScript(path, whole)) seen.scripts.push(path);
}

function isScript(path: string, whole: string): boolean {
  const name = (path.split("/").pop() ?? path).toLowerCase();
  if (SCRIPT_EXTENSIONS.has(extname(name)) || SCRIPT_NAMES.has(name)) return true;
  try {
    const stat = fs.statSync(whole);
    // A linked folder is not entered, so it counts as a script.
    return stat.isDirectory() || (stat.mode & EXECUTE_BITS) !== 0;
  } catch {
    return true;
  }
}
