/**
 * Checkpoints: the former contents of files that tools and commands overwrote or deleted, and how to restore them. This
 * folder records changes, plans and applies undo steps, and computes a session's code changes.
 *
 *   <session>/checkpoints/objects/<hash>   former contents, each once, by their SHA-256
 *                         packs/           former contents stored together, see `checkpoint-packs.ts`
 *                         saved/           contents that a forced undo replaced, for the user to open
 *                         changes.jsonl    one line per change, in order; never rewritten
 *
 * A line is on disk before its change is made. A listed change may not have happened, but no change that happened is
 * missing. Undoing a change twice is harmless.
 */
import { lstat, readFile, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import type { Seal } from "../lib/node/seal.ts";
import { sweepReplacements, sweepTemporaries } from "../lib/node/temporaries.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { FileChange } from "../tools/files/files.ts";
import { CheckpointLines } from "./checkpoint-lines.ts";
import { CheckpointPacks } from "./checkpoint-packs.ts";
import { type CheckpointLine, type Entries, entriesSchema, type PathState } from "./checkpoint-schema.ts";
import {
  ALWAYS_ENTRIES,
  contentOf,
  entryAt,
  MAX_TREE_BYTES,
  type Surveyed,
  sameEntry,
  sha256,
  survey,
  type TreeOptions,
} from "./checkpoint-tree.ts";

type StoredEntries = { readonly path: string; readonly entry: PathState }[];

export interface StoredTree {
  /** Files that could not be read and therefore have no checkpoint. */
  readonly unreadable: readonly string[];
  /**
   * Records the state after the command, to distinguish its changes from later ones. With "anyone", other processes may
   * have changed files too: then only deletions are attributed to the command.
   */
  settle(changedBy?: "command" | "anyone"): Promise<void>;
}

/** One changed path. `after` is undefined if the command did not finish or the change cannot be attributed to it. */
export interface StoredChange {
  readonly seq: number;
  readonly time: string;
  /** The id of the message whose answer made it, or the name of a planned group (a stored name). */
  readonly turn: string;
  readonly toolCallId: string;
  readonly path: string;
  readonly before: PathState;
  readonly after: PathState | undefined;
  readonly folders: readonly string[];
}

export interface CheckpointOptions {
  /** The session's own folder. */
  readonly directory: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  /** Encrypts contents on disk, because they may hold secrets. */
  readonly seal?: () => Promise<Seal>;
  /** Returns the id of the message that is being answered. Its changes can be undone together. */
  readonly messageId?: () => string;
}

/** Limit for the changed files of one command whose contents are hashed. The command could make all of them huge. */
const MAX_SETTLED_BYTES = 2 * MAX_TREE_BYTES;
/** Limit for the recorded paths created by one command. */
const MAX_CREATED = 200;
/** Limit for the created files whose contents are hashed. */
const MAX_CREATED_BYTES = 8 * 1024 * 1024;
const MAX_SEEN = 100_000;
/** Number of recent changes whose temporary files are cleaned up after a crash. */
const LAST_CHANGES = 50;

export class Checkpoints {
  readonly #folder: string;
  readonly #objects: string;
  readonly #lines: CheckpointLines;
  readonly #packs: CheckpointPacks;
  /** Version and hash of files stored before, by path. Unchanged files are not read again. */
  readonly #seen = new Map<string, { version: string; hash: string }>();
  readonly #options: CheckpointOptions;
  /** Tail of the queue that serializes writes: parallel calls must not share a number or a line. */
  #last: Promise<unknown> = Promise.resolve();
  #sealing: Promise<Seal> | undefined;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#folder = join(options.directory, "checkpoints");
    this.#objects = join(this.#folder, "objects");
    this.#lines = new CheckpointLines(this.#folder, options.disk);
    this.#packs = new CheckpointPacks(join(this.#folder, "packs"), options.disk, () => this.#seal());
  }

  /** Stores the former contents and logs the changes; for `rememberedFiles`. Resolves when all of it is on disk. */
  keep(changes: readonly FileChange[]): Promise<void> {
    return this.#runExclusive(async () => {
      const first = await this.#lines.nextSeq();
      const lines: CheckpointLine[] = [];
      for (const [index, { path, toolCallId, before, after, madeFolders }] of changes.entries()) {
        const old: PathState =
          before === "missing"
            ? { kind: "missing" }
            : { kind: "file", hash: await this.storeObject(before.content), mode: before.mode };
        const next: PathState =
          after === "missing" ? { kind: "missing" } : { kind: "file", hash: after.hash, mode: -1 };
        const head = this.#head(first + index, toolCallId);
        lines.push({ kind: "change", ...head, path, before: old, after: next, folders: [...madeFolders] });
      }
      await this.#lines.append(lines);
    });
  }

  /**
   * Stores all files, links and folders below the paths, including ignored ones, before a command that may destroy
   * them. Throws a limit error and logs no checkpoint if there is too much.
   */
  async storeTree(paths: readonly string[], toolCallId: string, options: TreeOptions = {}): Promise<StoredTree> {
    const end = performance.now() + (options.milliseconds ?? Number.POSITIVE_INFINITY);
    const found = await survey(paths, options);
    const { kept, unreadable } = await this.#runExclusive(() => this.#storeFound(found, end));
    const manifest = await this.storeObject(Buffer.from(JSON.stringify(kept)));
    const seq = await this.#runExclusive(async () => {
      const next = await this.#lines.nextSeq();
      await this.#lines.append([{ kind: "tree", ...this.#head(next, toolCallId), entries: manifest }]);
      return next;
    });
    const versions = new Map(found.map(({ path, version }) => [path, version]));
    const settle: StoredTree["settle"] = async (changedBy = "command") => {
      const now = await survey(paths, { ...options, entries: 2 * found.length + 1000, bytes: Number.POSITIVE_INFINITY })
        .catch(() => [])
        .then((all) => new Map(all.map((one) => [one.path, one])));
      const changed: Entries = [];
      let unread = MAX_SETTLED_BYTES;
      for (const { path, entry } of kept) {
        if (now.has(path) && now.get(path)?.version === versions.get(path)) continue;
        const size = (await lstat(path).catch(() => undefined))?.size ?? 0;
        if (size > unread) {
          changed.push({ path });
          continue;
        }
        unread -= size;
        const left = await entryAt(path);
        if (sameEntry(left, entry)) continue;
        changed.push(changedBy === "command" || left.kind === "missing" ? { path, entry: left } : { path });
      }
      const made = [...now.values()].filter(({ path }) => !versions.has(path)).slice(0, MAX_CREATED);
      if (changedBy === "command") changed.push(...(await createdEntries(made)));
      const created = made.map(({ path }) => path);
      const entries = await this.storeObject(Buffer.from(JSON.stringify(changed)));
      await this.#runExclusive(() => this.#lines.append([{ kind: "settled", seq, entries, created }]));
    };
    return { unreadable, settle };
  }

  /** Returns the changes that are not undone, oldest first. */
  async changes(): Promise<readonly StoredChange[]> {
    const lines = await this.#lines.read();
    const undone = new Set(lines.flatMap((line) => (line.kind === "undone" ? line.seqs : [])));
    const changes: StoredChange[] = [];
    for (const line of lines) {
      if ((line.kind !== "change" && line.kind !== "tree") || undone.has(line.seq)) continue;
      if (line.kind === "change") changes.push(line);
      else changes.push(...(await this.#expand(line, lines)));
    }
    return changes;
  }

  /** Returns the files that commands created, oldest first, also of commands that were undone: undo leaves the files. */
  async creations(): Promise<readonly StoredChange[]> {
    const lines = await this.#lines.read();
    const found: StoredChange[] = [];
    for (const line of lines) {
      if (line.kind !== "settled" || line.created.length === 0) continue;
      const head = lines.find((other) => other.kind === "tree" && other.seq === line.seq);
      if (head?.kind !== "tree") continue;
      const { kind: _, entries: __, ...about } = head;
      const left = new Map((await this.#entries(line.entries)).map(({ path, entry }) => [path, entry]));
      for (const path of line.created) {
        found.push({ ...about, path, before: { kind: "missing" }, after: left.get(path), folders: [] });
      }
    }
    return found;
  }

  /** Returns the paths created by the commands with these change numbers. */
  async createdBy(seqs: readonly number[]): Promise<readonly string[]> {
    const wanted = new Set(seqs);
    return (await this.#lines.read()).flatMap((line) =>
      line.kind === "settled" && wanted.has(line.seq) ? line.created : [],
    );
  }

  /** Returns the paths created by commands that have a checkpoint and are not undone. */
  async created(): Promise<readonly string[]> {
    const lines = await this.#lines.read();
    const undone = new Set(lines.flatMap((line) => (line.kind === "undone" ? line.seqs : [])));
    return lines.flatMap((line) => (line.kind === "settled" && !undone.has(line.seq) ? line.created : []));
  }

  /**
   * Removes temporary files of interrupted writes, here and beside the files last changed. Call it when a session
   * starts.
   */
  async sweep(): Promise<void> {
    await sweepReplacements(this.#folder, this.#options.disk);
    const last = (await this.#lines.read()).filter((line) => line.kind === "change").slice(-LAST_CHANGES);
    for (const folder of new Set(last.map(({ path }) => dirname(path)))) {
      await sweepTemporaries(folder, this.#options.disk);
    }
  }

  async noteUndone(seqs: readonly number[]): Promise<void> {
    const time = new Date(this.#options.stamp.now()).toISOString();
    await this.#runExclusive(() => this.#lines.append([{ kind: "undone", time, seqs: [...new Set(seqs)] }]));
  }

  /** Logs changes that are about to be made together under one name. Their contents must be stored already. */
  async storePlanned(
    name: string,
    changes: readonly (Pick<StoredChange, "path" | "before" | "folders"> & { readonly after: PathState })[],
  ): Promise<void> {
    await this.#runExclusive(async () => {
      const first = await this.#lines.nextSeq();
      const time = new Date(this.#options.stamp.now()).toISOString();
      const head = { kind: "change", time, turn: name, toolCallId: name } as const;
      await this.#lines.append(
        changes.map((change, index) => ({ ...head, ...change, folders: [...change.folders], seq: first + index })),
      );
    });
  }

  /** Records that all changes planned under this name were made. */
  async noteMade(name: string): Promise<void> {
    await this.#runExclusive(() => this.#lines.append([{ kind: "made", turn: name }]));
  }

  async isMade(name: string): Promise<boolean> {
    return (await this.#lines.read()).some((line) => line.kind === "made" && line.turn === name);
  }

  /** Stores the bytes, once per content, and returns their hash. */
  async storeObject(content: Uint8Array): Promise<string> {
    const hash = sha256(content);
    const path = this.#objectPath(hash);
    if (await lstat(path).catch(() => undefined)) return hash;
    const seal = await this.#seal();
    await this.#write(path, seal?.close(content) ?? content);
    return hash;
  }

  /** Writes an unencrypted copy that the user can open; returns its path. */
  async saveCopy(content: Uint8Array): Promise<string> {
    const path = join(this.#folder, "saved", sha256(content));
    await this.#write(path, content);
    return path;
  }

  async #write(path: string, content: Uint8Array): Promise<void> {
    const { disk } = this.#options;
    await disk.mkdir(dirname(path));
    await replaceFile(disk, path, content);
    await disk.syncDirectory(dirname(path));
  }

  async #seal(): Promise<Seal | undefined> {
    this.#sealing ??= this.#options.seal?.();
    return this.#sealing;
  }

  #objectPath(hash: string): string {
    return join(this.#objects, hash);
  }

  /** Returns stored bytes. Throws if they are missing or do not match the hash. */
  async object(hash: string): Promise<Buffer> {
    const content = /^[0-9a-f]{64}$/.test(hash)
      ? ((await this.#readObject(hash)) ?? (await this.#packs.read(hash)))
      : undefined;
    if (content && sha256(content) === hash) return content;
    throw new TroupeError("storage", `The stored content ${hash.slice(0, 12)} is missing or damaged.`, {
      hint: `It should be in ${this.#objects}.`,
    });
  }

  async #readObject(hash: string): Promise<Buffer | undefined> {
    const bytes = await readFile(this.#objectPath(hash)).catch(() => undefined);
    const seal = await this.#seal();
    return bytes && seal ? seal.open(bytes) : bytes;
  }

  /** Stores the files in one pack. Files that are unchanged since the last time are not read again. */
  async #storeFound(found: readonly Surveyed[], end: number): Promise<{ kept: StoredEntries; unreadable: string[] }> {
    if (this.#seen.size > MAX_SEEN) this.#seen.clear();
    const unreadable: string[] = [];
    const hashes = new Map<string, string>();
    const stale = found.filter(
      ({ path, kind, version }) => kind === "file" && this.#seen.get(path)?.version !== version,
    );
    async function* contents(): AsyncGenerator<Buffer> {
      for (const [index, { path }] of stale.entries()) {
        if (index >= ALWAYS_ENTRIES && performance.now() > end)
          throw new TroupeError("limit", "Copying the files takes too long.");
        const content = await contentOf(path, { isReal: true });
        if (content === undefined) unreadable.push(path);
        else {
          hashes.set(path, sha256(content));
          yield content;
        }
      }
    }
    if (stale.length > 0) await this.#packs.keep(contents());
    const kept: StoredEntries = [];
    for (const { path, kind, mode, version } of found) {
      if (kind === "folder") kept.push({ path, entry: { kind, mode } });
      else if (kind === "link") kept.push({ path, entry: { kind, target: await readlink(path).catch(() => "") } });
      else {
        const hash = hashes.get(path) ?? this.#seen.get(path)?.hash;
        if (hash === undefined || unreadable.includes(path)) continue;
        this.#seen.set(path, { version, hash });
        kept.push({ path, entry: { kind, hash, mode } });
      }
    }
    return { kept, unreadable };
  }

  async #expand(
    line: Extract<CheckpointLine, { kind: "tree" }>,
    lines: readonly CheckpointLine[],
  ): Promise<StoredChange[]> {
    const { kind: _, entries, ...head } = line;
    const settled = lines.find((other) => other.kind === "settled" && other.seq === line.seq);
    const left = settled?.kind === "settled" ? await this.#entries(settled.entries) : undefined;
    if (left?.length === 0) return [];
    const after = left && new Map(left.map(({ path, entry }) => [path, entry]));
    const changes: StoredChange[] = [];
    for (const { path, entry } of await this.#entries(entries)) {
      if (entry === undefined) continue;
      const changed = after === undefined ? !sameEntry(await entryAt(path), entry) : after.has(path);
      if (changed) changes.push({ ...head, path, before: entry, after: after?.get(path), folders: [] });
    }
    return changes;
  }

  async #entries(hash: string): Promise<Entries> {
    return entriesSchema.parse(JSON.parse((await this.object(hash)).toString()));
  }

  #head(seq: number, toolCallId: string): { seq: number; time: string; turn: string; toolCallId: string } {
    const { stamp, messageId } = this.#options;
    return { seq, time: new Date(stamp.now()).toISOString(), turn: messageId?.() ?? "", toolCallId };
  }

  #runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Returns the states of created files. Large ones are left out: reading them would take long. */
async function createdEntries(made: readonly Surveyed[]): Promise<Entries> {
  const entries: Entries = [];
  let bytes = 0;
  for (const { path, kind, size } of made) {
    if (kind !== "file" || bytes + size > MAX_CREATED_BYTES) continue;
    bytes += size;
    entries.push({ path, entry: await entryAt(path) });
  }
  return entries;
}

/** Returns a description for lists, such as "created a.ts". */
export function describeChange({ path, before, after }: StoredChange): string {
  if (before.kind === "missing") return `created ${path}`;
  if (after?.kind === "missing") return `deleted ${path}`;
  return after === undefined ? `may have changed ${path}` : `changed ${path}`;
}
