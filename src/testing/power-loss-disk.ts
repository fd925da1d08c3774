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
  const current: Names = new Map();
  const durable: Names = new Map();
  /** Name changes that no directory sync has persisted yet, in order. */
  let pending: { folder: string; apply(names: Names): void }[] = [];
  const open = new Map<number, Node>();

  function change(path: string, apply: (names: Names) => void): void {
    apply(current);
    pending.push({ folder: dirname(path), apply });
  }

  function nodeOf(path: string): Node {
    const known = current.get(path);
    if (known) return known;
    const content = fs.readFileSync(path);
    const node = { current: content, synced: content };
    current.set(path, node);
    durable.set(path, node);
    return node;
  }

  async function opened(path: string, how: () => Promise<number>): Promise<number> {
    const isNew = !current.has(path) && !fs.existsSync(path);
    const fd = await how();
    const node = isNew ? { current: Buffer.alloc(0), synced: Buffer.alloc(0) } : nodeOf(path);
    if (isNew) change(path, (names) => names.set(path, node));
    open.set(fd, node);
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
    async syncDirectory(path) {
      const settled = pending.filter((entry) => entry.folder === path);
      await inner.syncDirectory(path);
      for (const entry of settled) entry.apply(durable);
      pending = pending.filter((entry) => !settled.includes(entry));
    },
    async truncate(path, length) {
      const node = nodeOf(path);
      await inner.truncate(path, length);
      node.current = node.current.subarray(0, length);
    },
    async rename(from, to) {
      const node = nodeOf(from);
      await inner.rename(from, to);
      change(to, (names) => {
        names.delete(from);
        names.set(to, node);
      });
    },
    async link(from, to) {
      const node = nodeOf(from);
      await inner.link(from, to);
      change(to, (names) => names.set(to, node));
    },
    async unlink(path) {
      await inner.unlink(path);
      change(path, (names) => names.delete(path));
    },
    async close(fd) {
      open.delete(fd);
      await inner.close(fd);
    },
    layOut(root, target, random) {
      const names = new Map(durable);
      const survive = Math.floor(random() * (pending.length + 1));
      for (const entry of pending.slice(0, survive)) entry.apply(names);
      for (const [path, node] of names) {
        const place = join(target, relative(root, path));
        fs.mkdirSync(dirname(place), { recursive: true });
        fs.writeFileSync(place, survivingContent(node, random));
      }
    },
  };
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
