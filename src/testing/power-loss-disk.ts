/**
 * Simulates the state after a power cut. All operations run on the inner disk, and synced data is recorded separately.
 * So at any moment a folder can be laid out as it might look after the cut: synced content and synced names are
 * present, and an arbitrary part of the rest.
 */
import * as fs from "node:fs";
import { dirname, join, relative } from "node:path";
import type { Disk } from "../lib/node/disk.ts";

interface Node {
  current: Buffer;
  synced: Buffer;
}
type Names = Map<string, Node>;

export interface PowerLossDisk extends Disk {
  /** Writes below `target` what might have survived of `root`. `random` gives numbers from 0 up to 1. */
  layOut(root: string, target: string, random: () => number): void;
}

export function powerLossDisk(inner: Disk): PowerLossDisk {
  const tree = new FileTree();
  const open = new Map<number, Node>();

  async function opened(path: string, how: () => Promise<number>): Promise<number> {
    const isNew = tree.isNew(path);
    const fd = await how();
    open.set(fd, isNew ? tree.create(path) : tree.nodeOf(path));
    return fd;
  }

  return {
    ...inner,
    openAppend: (path) => opened(path, () => inner.openAppend(path)),
    openExclusive: (path) => opened(path, () => inner.openExclusive(path)),
    async write(fd, data) {
      await inner.write(fd, data);
      const node = open.get(fd);
      if (node) node.current = Buffer.concat([node.current, data]);
    },
    async sync(fd) {
      const node = open.get(fd);
      const content = node?.current;
      await inner.sync(fd);
      if (node && content) node.synced = content;
    },
    syncDirectory: (path) => tree.sync(path, () => inner.syncDirectory(path)),
    async truncate(path, length) {
      const node = tree.nodeOf(path);
      await inner.truncate(path, length);
      node.current = node.current.subarray(0, length);
    },
    async rename(from, to) {
      const node = tree.nodeOf(from);
      await inner.rename(from, to);
      tree.change(to, (names) => {
        names.delete(from);
        names.set(to, node);
      });
    },
    async link(from, to) {
      const node = tree.nodeOf(from);
      await inner.link(from, to);
      tree.change(to, (names) => names.set(to, node));
    },
    async unlink(path) {
      await inner.unlink(path);
      tree.change(path, (names) => names.delete(path));
    },
    async close(fd) {
      open.delete(fd);
      await inner.close(fd);
    },
    layOut: (root, target, random) => layOut(tree.surviving(random), { root, target, random }),
  };
}

/** The names of files: current ones, and those that would survive a power cut. */
class FileTree {
  readonly #current: Names = new Map();
  readonly #durable: Names = new Map();
  /** Name changes that no directory sync has persisted yet, in order. */
  #pending: { folder: string; apply(names: Names): void }[] = [];

  isNew(path: string): boolean {
    return !this.#current.has(path) && !fs.existsSync(path);
  }

  create(path: string): Node {
    const node = { current: Buffer.alloc(0), synced: Buffer.alloc(0) };
    this.change(path, (names) => names.set(path, node));
    return node;
  }

  /** Returns a file's content. A file that existed before counts as synced. */
  nodeOf(path: string): Node {
    const known = this.#current.get(path);
    if (known) return known;
    const content = fs.readFileSync(path);
    const node = { current: content, synced: content };
    this.#current.set(path, node);
    this.#durable.set(path, node);
    return node;
  }

  change(path: string, apply: (names: Names) => void): void {
    apply(this.#current);
    this.#pending.push({ folder: dirname(path), apply });
  }

  /** Persists the name changes of a folder that were made before the sync began. */
  async sync(folder: string, run: () => Promise<void>): Promise<void> {
    const settled = this.#pending.filter((entry) => entry.folder === folder);
    await run();
    for (const entry of settled) entry.apply(this.#durable);
    this.#pending = this.#pending.filter((entry) => !settled.includes(entry));
  }

  /** Returns the durable names and a random first part of the pending changes. */
  surviving(random: () => number): Names {
    const names = new Map(this.#durable);
    const count = Math.floor(random() * (this.#pending.length + 1));
    for (const entry of this.#pending.slice(0, count)) entry.apply(names);
    return names;
  }
}

interface Layout {
  readonly root: string;
  readonly target: string;
  readonly random: () => number;
}

function layOut(names: Names, { root, target, random }: Layout): void {
  for (const [path, node] of names) {
    const copy = join(target, relative(root, path));
    fs.mkdirSync(dirname(copy), { recursive: true });
    fs.writeFileSync(copy, survivingContent(node, random));
  }
}

/**
 * Returns all unsynced content, none, a first part, or a first part followed by nulls where only the length was
 * persisted.
 */
function survivingContent({ current, synced }: Node, random: () => number): Buffer {
  const isLonger = current.length >= synced.length && current.subarray(0, synced.length).equals(synced);
  if (!isLonger) return random() < 0.5 ? synced : current;
  const extra = current.length - synced.length;
  const part = synced.length + Math.floor(random() * (extra + 1));
  const choices = [
    () => synced,
    () => current,
    () => current.subarray(0, part),
    () => Buffer.concat([current.subarray(0, part), Buffer.alloc(current.length - part)]),
  ];
  return choices[Math.floor(random() * choices.length)]?.() ?? synced;
}
