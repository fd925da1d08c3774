/** Chooses the folders of a file list that are shown, and the files that describe a folder. */
import { baseName, folderOf, isCode, isProse, isTest, languageOf, stemOf } from "./languages.ts";

export interface Folder {
  readonly path: string;
  /** Number of files below, at any depth. */
  readonly files: number;
  /** Indentation level in the tree. */
  readonly depth: number;
  /** Number of subfolders without their own line although siblings have one. */
  readonly unlisted: number;
  /** True if its subfolders have their own lines. */
  readonly opened: boolean;
}

interface Node {
  readonly path: string;
  readonly direct: string[];
  readonly children: Set<string>;
  total: number;
  code: number;
}

const CONTAINERS =
  /^(src|lib|libs|packages|apps|crates|internal|cmd|pkg|services|modules|components|plugins|app|source|sources|projects|tools)$/;
const CLOSED =
  /^(tests?|__tests__|spec|docs?|examples?|fixtures?|assets|public|static|images|migrations|locales?|i18n|\..*)$/;
const MAX_CHILDREN = 20;

export function importantFolders(files: readonly string[], limit: number): Folder[] {
  const nodes = treeOf(files);
  const open = new Map<string, string[]>();
  const shown = new Set(childrenOf(nodes, "").slice(0, limit));
  for (;;) {
    const room = limit - shown.size;
    const next = [...shown]
      .filter((path) => !open.has(path) && mayOpen(nodes, path, files.length))
      .map((path) => ({ path, children: childrenOf(nodes, path).slice(0, MAX_CHILDREN) }))
      .filter(({ children }) => children.length > 0 && children.length <= room)
      .sort((a, b) => (nodes.get(b.path)?.code ?? 0) - (nodes.get(a.path)?.code ?? 0) || (a.path < b.path ? -1 : 1))[0];
    if (next === undefined) break;
    open.set(next.path, next.children);
    for (const child of next.children) shown.add(child);
  }
  return rows({ nodes, open, depth: 0, paths: childrenOf(nodes, "").filter((path) => shown.has(path)) });
}

/** Returns files that may describe a folder, best first. */
export function speakersFor(folder: string, files: readonly string[]): string[] {
  const name = baseName(folder);
  const inside = files.filter((file) => file.startsWith(`${folder}/`));
  const subfolders = new Set(
    inside.map((file) => file.slice(folder.length + 1).split("/")).map((parts) => (parts.length > 1 ? parts[0] : "")),
  );
  const rank = (file: string): number => {
    const stem = stemOf(file).toLowerCase();
    if (languageOf(file) === undefined && stem !== "readme") return 40;
    if (folderOf(file) !== folder)
      return folderOf(file) === `${folder}/src` && /^(index|main|lib|mod)$/.test(stem) ? 6 : 20;
    if (/^readme$/.test(stem)) return 0;
    if (baseName(file) === "package.json") return 5;
    if (!isCode(file) || file.endsWith(".d.ts")) return isProse(file) ? (stem === "index" ? 3 : 12) : 30;
    if (isTest(file) && !isTest(`${folder}/x`)) return 25;
    if (stem === name.toLowerCase() || `${stem}s` === name.toLowerCase() || stem === `${name.toLowerCase()}s`) return 1;
    if (/^(doc|docs)$/.test(stem)) return 2;
    if (/^(index|main|mod|lib|app|package-info)$/.test(stem)) return 3;
    if (stem === "__init__") return 4;
    if (languageOf(file)?.family === "make") return 13;
    // provider.ts beside providers/: the concept that its siblings implement.
    return subfolders.has(stem) || subfolders.has(`${stem}s`) ? 6 : 8;
  };
  const speaksDirectly = inside.some((file) => folderOf(file) === folder && isCode(file));
  return inside
    .map((file) => ({ file, rank: rank(file) }))
    .filter((one) => one.rank < (speaksDirectly ? 20 : 30))
    .sort((a, b) => a.rank - b.rank || depthOf(a.file) - depthOf(b.file) || (a.file < b.file ? -1 : 1))
    .slice(0, 3)
    .map((one) => one.file);
}

/** True for tests, documents, examples and the like, which are not part of the program. */
export function isAside(folder: string): boolean {
  return folder.split("/").some((name) => CLOSED.test(name));
}

/** Returns the files that describe a folder. If its subfolders have their own lines, only its direct files count. */
export function speakersOf(folder: Folder, files: readonly string[]): string[] {
  const speakers = speakersFor(folder.path, files);
  return folder.opened ? speakers.filter((file) => folderOf(file) === folder.path) : speakers;
}

/** True if the file's description applies to its whole folder. */
export function speaksForFolder(folder: string, file: string): boolean {
  const stem = stemOf(file).toLowerCase();
  const name = baseName(folder).toLowerCase();
  return (
    /^(readme|doc|index|main|app|mod|lib|__init__|package-info|package)$/.test(stem) ||
    stem === name ||
    `${stem}s` === name ||
    stem === `${name}s`
  );
}

function treeOf(files: readonly string[]): Map<string, Node> {
  const nodes = new Map<string, Node>();
  const nodeAt = (path: string): Node => {
    const known = nodes.get(path);
    if (known !== undefined) return known;
    const node: Node = { path, direct: [], children: new Set(), total: 0, code: 0 };
    nodes.set(path, node);
    if (path !== "") nodeAt(folderOf(path)).children.add(path);
    return node;
  };
  for (const file of files) {
    let folder = folderOf(file);
    nodeAt(folder).direct.push(file);
    for (;;) {
      const node = nodeAt(folder);
      node.total += 1;
      if (isCode(file)) node.code += 1;
      if (folder === "") break;
      folder = folderOf(folder);
    }
  }
  return nodes;
}

/** Returns the children, largest first. Chains of single folders are followed. */
function childrenOf(nodes: ReadonlyMap<string, Node>, path: string): string[] {
  const children = [...(nodes.get(path)?.children ?? [])].filter((child) => !baseName(child).startsWith("."));
  const walked = children.map((child) => {
    let node = nodes.get(child);
    while (node !== undefined && node.direct.length === 0 && node.children.size === 1)
      node = nodes.get([...node.children][0] ?? "");
    return node?.path ?? child;
  });
  return walked.sort((a, b) => (nodes.get(b)?.total ?? 0) - (nodes.get(a)?.total ?? 0) || (a < b ? -1 : 1));
}

function mayOpen(nodes: ReadonlyMap<string, Node>, path: string, all: number): boolean {
  const node = nodes.get(path);
  const name = baseName(path);
  if (node === undefined || node.children.size === 0 || CLOSED.test(name) || isTest(`${path}/x`)) return false;
  return CONTAINERS.test(name) || node.direct.length === 0 || (node.children.size > 1 && node.total * 4 > all);
}

function rows(level: {
  nodes: ReadonlyMap<string, Node>;
  open: ReadonlyMap<string, readonly string[]>;
  depth: number;
  paths: readonly string[];
}): Folder[] {
  const { nodes, open, depth } = level;
  return [...level.paths].sort().flatMap((path) => {
    const children = open.get(path) ?? [];
    const unlisted = children.length === 0 ? 0 : childrenOf(nodes, path).length - children.length;
    const row: Folder = { path, files: nodes.get(path)?.total ?? 0, depth, unlisted, opened: children.length > 0 };
    return [row, ...rows({ nodes, open, depth: depth + 1, paths: children })];
  });
}

function depthOf(path: string): number {
  return path.split("/").length;
}
