/** The locations of MCP configuration files. */
import * as fs from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

export const USER_FILE = "mcp-config.json";
/** An earlier file wins over later ones of the same folder. */
const PROJECT_FILES = [".troupe/mcp.json", ".mcp.json", ".github/mcp.json"];
export const MAX_CONFIG_BYTES = 256 * 1024;
const MAX_FOLDERS = 64;

export interface ProjectMcpFile {
  readonly path: string;
  /** The folder it applies to. */
  readonly folder: string;
}

/**
 * Returns the files of the nearest folder first, up to the root of the repository. Outside a repository, only the
 * folder itself.
 */
export function projectFiles(cwd: string, gitRoot: string | undefined): ProjectMcpFile[] {
  const files: ProjectMcpFile[] = [];
  let folder = resolve(cwd);
  const top = gitRoot !== undefined && isInside(folder, resolve(gitRoot)) ? resolve(gitRoot) : folder;
  for (let count = 0; count < MAX_FOLDERS; count++) {
    for (const name of PROJECT_FILES) {
      const path = join(folder, name);
      if (fs.statSync(path, { throwIfNoEntry: false })?.isFile()) files.push({ path, folder });
    }
    if (folder === top || dirname(folder) === folder) break;
    folder = dirname(folder);
  }
  return files;
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}
