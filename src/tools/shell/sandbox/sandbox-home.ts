/**
 * The home folder under the strict profile: empty except for the folders of tools and their caches, which are
 * read-only.
 */
import { existsSync } from "node:fs";
import { join, sep } from "node:path";

const TOOL_FOLDERS = [
  ".asdf",
  ".bun",
  ".cache",
  ".cargo",
  ".deno",
  ".fnm",
  ".gradle",
  ".local/bin",
  ".local/lib",
  ".local/share/fnm",
  ".local/share/mise",
  ".local/share/pnpm",
  ".local/share/uv",
  ".m2",
  ".npm",
  ".nvm",
  ".pyenv",
  ".rbenv",
  ".rustup",
  ".sdkman",
  ".volta",
  "go",
];

/** Returns the folders that stay visible. `searchPath` has the form of PATH: programs found there stay reachable. */
export function hiddenHome(home: string, searchPath: string): string[] {
  const isBelow = (path: string, folder: string): boolean => path.startsWith(folder + sep);
  const tools = TOOL_FOLDERS.map((name) => join(home, name));
  const searched = searchPath
    .split(":")
    .filter((path) => isBelow(path, home) && !path.split(sep).includes(".."))
    .filter((path) => !tools.some((tool) => path === tool || isBelow(path, tool)));
  return [...new Set([...tools, ...searched])].filter((path) => existsSync(path));
}
