/** Where configurations of MCP servers lie, and how a file that may be anything is read. */
import * as fs from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

export const USER_FILE = "mcp-config.json";
/** The first that has a server wins over the later ones of the same folder. */
const PROJECT_FILES = [".troupe/mcp.json", ".mcp.json", ".github/mcp.json"];
const MAX_FILE_BYTES = 256 * 1024;
const MAX_FOLDERS = 64;

export interface ProjectFile {
  readonly path: string;
  /** The folder it speaks for. */
  readonly folder: string;
}

/** Nearest folder first, up to the root of the repository; outside of one, only the folder itself. */
export function projectFiles(cwd: string, gitRoot: string | undefined): ProjectFile[] {
  const files: ProjectFile[] = [];
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

export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "unusable"; readonly reason: string };

/** Never waits for a pipe and never reads more than a configuration can be. */
export function readConfigFile(path: string, maxBytes = MAX_FILE_BYTES): FileText {
  let fd: number | undefined;
  try {
    if (!fs.statSync(path, { throwIfNoEntry: false })?.isFile()) return { kind: "missing" };
    fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    const { size } = fs.fstatSync(fd);
    if (size > maxBytes) return { kind: "unusable", reason: `is larger than ${Math.round(maxBytes / 1024)} KiB` };
    const bytes = Buffer.alloc(size);
    const read = fs.readSync(fd, bytes, 0, size, 0);
    return { kind: "text", text: bytes.toString("utf8", 0, read).replace(/^\ufeff/, "") };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR"
      ? { kind: "missing" }
      : { kind: "unusable", reason: `cannot be read (${code})` };
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}
