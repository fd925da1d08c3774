/** Returns the paths that a shell command names, in every folder in which it may run, with links resolved. */

import { dirname, join, resolve } from "node:path";
import { baseName } from "./case-fold.ts";
import { isDevice } from "./devices.ts";
import type { PermissionPathScope } from "./path-scope.ts";
import type { ShellAnalysis, ShellCommand } from "./shell/analyse.ts";
import { type Folders, START } from "./shell/folders.ts";
import { FOLDER_OPTION, looksLikePath, pathTexts } from "./shell/mentions.ts";
import { changesItsOperands } from "./shell/programs.ts";

export interface NamedPath {
  /** As written. */
  readonly text: string;
  /** Real paths it may resolve to; more than one when the folder is uncertain. */
  readonly real: readonly string[];
  /** True when the command would change or create it. */
  readonly write: boolean;
  /**
   * False for a word that may be anything, such as a search pattern: it does not look like a path, or nothing exists
   * there.
   */
  readonly counts: boolean;
  /** True when `..` follows a part that does not exist yet. */
  readonly unsettled: boolean;
  readonly by: "redirection" | "folder" | "operand" | "program";
}

const ENTERING = new Set(["cd", "pushd"]);

export function namedPaths(scope: PermissionPathScope, cwd: string, analysis: ShellAnalysis): NamedPath[] {
  const resolver = new PathResolver(scope, cwd);
  return [
    ...analysis.redirections
      .filter(({ target, write }) => !isDevice(target, { write }))
      .map(({ target, write, folders }) =>
        resolver.named(target, resolver.foldersOf(folders), { write, by: "redirection" }),
      ),
    ...analysis.commands.flatMap((command) => operandsOf(command, resolver)),
  ];
}

function operandsOf(command: ShellCommand, resolver: PathResolver): NamedPath[] {
  const [program = "", ...args] = command.words;
  const name = baseName(program);
  const write = !command.readOnly && (changesItsOperands(name) || command.escapes);
  const folders = resolver.withOptions(args, resolver.foldersOf(command.folders));
  const own = program.includes("/") ? [resolver.named(program, folders, { write: false, by: "program" })] : [];
  const named = (text: string, by: NamedPath["by"]): NamedPath => resolver.named(text, folders, { write, by });
  if (ENTERING.has(name)) {
    const entered = args.filter((word) => !word.startsWith("-"));
    return (entered.length === 0 && !args.includes("-") ? ["~"] : entered).map((word) => named(word, "folder"));
  }
  const operands = [...new Set(args)].flatMap((word) => pathTexts(word).map((text) => named(text, "operand")));
  return [...own, ...operands];
}

/** Resolves the paths of one command and caches the lookups. */
class PathResolver {
  readonly #scope: PermissionPathScope;
  readonly #cwd: string;
  readonly #folders = new Map<Folders, readonly string[]>();

  constructor(scope: PermissionPathScope, cwd: string) {
    this.#scope = scope;
    this.#cwd = cwd;
  }

  named(text: string, folders: readonly string[], more: Pick<NamedPath, "write" | "by">): NamedPath {
    const { resolvePath, isUnsettled, exists } = this.#scope;
    const real = [...new Set(folders.map((folder) => resolvePath(text, folder)))];
    const isNear = (path: string): boolean => exists(path) || (looksLikePath(text) && exists(dirname(path)));
    return {
      ...more,
      text,
      real,
      counts:
        more.by !== "operand" ||
        more.write ||
        real.some(isNear) ||
        real.some((path) => !folders.some((folder) => path === join(folder, text))),
      unsettled: text.includes("..") && folders.some((folder) => isUnsettled(text, folder)),
    };
  }

  foldersOf(folders: Folders = START): readonly string[] {
    const known = this.#folders.get(folders) ?? [...new Set(folders.ways.flatMap((way) => this.#follow(way)))];
    this.#folders.set(folders, known);
    return known;
  }

  /** Adds the folders of `-C folder` and similar options: words may be relative to them too. */
  withOptions(args: readonly string[], folders: readonly string[]): readonly string[] {
    const found = new Set(folders);
    for (const [index, word] of args.entries()) {
      const [, attached] = FOLDER_OPTION.exec(word) ?? [];
      if (attached === undefined) continue;
      const option = attached === "" ? (args[index + 1] ?? "") : attached;
      for (const folder of folders) found.add(this.#scope.resolvePath(option, folder));
    }
    return [...found];
  }

  /** `cd` resolves `..` by text, or as the kernel does when that fails. Returns both results. */
  #follow(way: readonly string[]): string[] {
    let at = [this.#cwd];
    for (const step of way) {
      at = at.flatMap((folder) => {
        const physical = this.#scope.resolvePath(step, folder);
        return step.startsWith("~") ? [physical] : [...new Set([resolve(folder, step), physical])];
      });
      at = [...new Set(at)];
    }
    return at;
  }
}
