/**
 * What tools overwrote or deleted, so that a person can have it back:
 *
 *   <session>/checkpoints/objects/<hash>   former contents, each once, by their SHA-256
 *                         changes.jsonl    one line for each change, in order; never rewritten
 *
 * A line is on disk before its change is made. So a change that is listed may not have happened, but none that
 * happened is missing, and taking one back twice does no harm.
 */
import { createHash } from "node:crypto";
import { lstat, open, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { parseJson } from "../lib/json.ts";
import { type Disk, replaceFile } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { FileChange } from "../tools/files.ts";

const entrySchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("missing") }),
  z.object({ kind: z.literal("file"), hash: z.string(), mode: z.number() }),
  z.object({ kind: z.literal("link"), target: z.string() }),
  z.object({ kind: z.literal("folder"), mode: z.number() }),
]);
/** What has a name in a folder. Of a file that is yet to be written only the content is known: mode -1. */
export type Entry = z.infer<typeof entrySchema>;

const lineSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("change"),
    seq: z.number(),
    time: z.string(),
    turn: z.string(),
    toolCallId: z.string(),
    path: z.string(),
    before: entrySchema,
    after: entrySchema,
    /** Folders made for the file, the outermost first. */
    folders: z.array(z.string()),
  }),
  /** Everything below some paths, before a command that may do anything to it. */
  z.object({
    kind: z.literal("tree"),
    seq: z.number(),
    time: z.string(),
    turn: z.string(),
    toolCallId: z.string(),
    entries: z.string(),
  }),
  /** What that command left behind. */
  z.object({ kind: z.literal("settled"), seq: z.number(), entries: z.string() }),
  z.object({ kind: z.literal("undone"), time: z.string(), seqs: z.array(z.number()) }),
]);
type Line = z.infer<typeof lineSchema>;

const entriesSchema = z.array(z.object({ path: z.string(), entry: entrySchema }));
type Entries = z.infer<typeof entriesSchema>;

/** One thing that was changed. `after` is undefined when the command that changed it did not come to its end. */
export interface KeptChange {
  readonly seq: number;
  readonly time: string;
  readonly turn: string;
  readonly toolCallId: string;
  readonly path: string;
  readonly before: Entry;
  readonly after: Entry | undefined;
  readonly folders: readonly string[];
}

export interface CheckpointOptions {
  /** The session's own folder. */
  readonly directory: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  /** Names the turn that is going on, so that a whole one can be taken back. */
  readonly turn?: () => string;
}

export const MAX_TREE_BYTES = 64 * 1024 * 1024;
const MAX_TREE_ENTRIES = 10_000;

export class Checkpoints {
  readonly #folder: string;
  readonly #objects: string;
  readonly #index: string;
  readonly #options: CheckpointOptions;
  /** The one after the other: two calls side by side must not share a number or a line. */
  #last: Promise<unknown> = Promise.resolve();
  #seq: number | undefined;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#folder = join(options.directory, "checkpoints");
    this.#objects = join(this.#folder, "objects");
    this.#index = join(this.#folder, "changes.jsonl");
  }

  /** For `rememberedFiles`: resolves when all of it is on disk. */
  keep(changes: readonly FileChange[]): Promise<void> {
    return this.#inTurn(async () => {
      const first = await this.#nextSeq();
      const lines: Line[] = [];
      for (const [index, { path, toolCallId, before, after, madeFolders }] of changes.entries()) {
        const old: Entry =
          before === "missing"
            ? { kind: "missing" }
            : { kind: "file", hash: await this.keepObject(before.content), mode: before.mode };
        const next: Entry = after === "missing" ? { kind: "missing" } : { kind: "file", hash: after.hash, mode: -1 };
        const head = this.#head(first + index, toolCallId);
        lines.push({ kind: "change", ...head, path, before: old, after: next, folders: [...madeFolders] });
      }
      await this.#append(lines);
    });
  }

  /**
   * Keeps all files, links and folders below the paths, ignored ones too, before a command that may destroy them.
   * `settle` notes what the command has left, so that later changes by others can be told from its own. Fails with a
   * limit error, and keeps nothing, when there is too much.
   */
  async keepTree(paths: readonly string[], toolCallId: string): Promise<{ settle(): Promise<void> }> {
    const found = await survey(paths);
    const kept: Entries = [];
    for (const { path, kind, mode } of found) {
      if (kind === "folder") kept.push({ path, entry: { kind, mode } });
      else if (kind === "link") kept.push({ path, entry: { kind, target: await readlink(path) } });
      else kept.push({ path, entry: { kind, hash: await this.keepObject(await readFile(path)), mode } });
    }
    const manifest = await this.keepObject(Buffer.from(JSON.stringify(kept)));
    const seq = await this.#inTurn(async () => {
      const next = await this.#nextSeq();
      await this.#append([{ kind: "tree", ...this.#head(next, toolCallId), entries: manifest }]);
      return next;
    });
    const settle = async (): Promise<void> => {
      const changed: Entries = [];
      for (const { path, entry } of kept) {
        const now = await entryAt(path);
        if (!sameEntry(now, entry)) changed.push({ path, entry: now });
      }
      const entries = await this.keepObject(Buffer.from(JSON.stringify(changed)));
      await this.#inTurn(() => this.#append([{ kind: "settled", seq, entries }]));
    };
    return { settle };
  }

  /** What has not been taken back, the oldest first. */
  async changes(): Promise<readonly KeptChange[]> {
    const lines = await this.#read();
    const undone = new Set(lines.flatMap((line) => (line.kind === "undone" ? line.seqs : [])));
    const changes: KeptChange[] = [];
    for (const line of lines) {
      if ((line.kind !== "change" && line.kind !== "tree") || undone.has(line.seq)) continue;
      if (line.kind === "change") changes.push(line);
      else changes.push(...(await this.#expand(line, lines)));
    }
    return changes;
  }

  async noteUndone(seqs: readonly number[]): Promise<void> {
    const time = new Date(this.#options.stamp.now()).toISOString();
    await this.#inTurn(() => this.#append([{ kind: "undone", time, seqs: [...new Set(seqs)] }]));
  }

  /** Keeps the bytes, the same ones once, and returns their hash. */
  async keepObject(content: Uint8Array): Promise<string> {
    const hash = sha256(content);
    const path = this.objectPath(hash);
    if (await lstat(path).catch(() => undefined)) return hash;
    await this.#options.disk.mkdir(this.#objects);
    await replaceFile(this.#options.disk, path, content);
    await this.#options.disk.syncDirectory(this.#objects);
    return hash;
  }

  objectPath(hash: string): string {
    return join(this.#objects, hash);
  }

  /** Fails when the bytes are gone, or are not what was kept. */
  async object(hash: string): Promise<Buffer> {
    const content = /^[0-9a-f]{64}$/.test(hash)
      ? await readFile(this.objectPath(hash)).catch(() => undefined)
      : undefined;
    if (content && sha256(content) === hash) return content;
    throw new TroupeError("storage", `The kept content ${hash.slice(0, 12)} is missing or damaged.`, {
      hint: `It should be in ${this.#objects}.`,
    });
  }

  async #expand(line: Extract<Line, { kind: "tree" }>, lines: readonly Line[]): Promise<KeptChange[]> {
    const { kind: _, entries, ...head } = line;
    const settled = lines.find((other) => other.kind === "settled" && other.seq === line.seq);
    const left = settled?.kind === "settled" ? await this.#entries(settled.entries) : undefined;
    const after = left && new Map(left.map(({ path, entry }) => [path, entry]));
    return (await this.#entries(entries))
      .filter(({ path }) => after === undefined || after.has(path))
      .map(({ path, entry }) => ({ ...head, path, before: entry, after: after?.get(path), folders: [] }));
  }

  async #entries(hash: string): Promise<Entries> {
    return entriesSchema.parse(JSON.parse((await this.object(hash)).toString()));
  }

  #head(seq: number, toolCallId: string): { seq: number; time: string; turn: string; toolCallId: string } {
    const { stamp, turn } = this.#options;
    return { seq, time: new Date(stamp.now()).toISOString(), turn: turn?.() ?? "", toolCallId };
  }

  /** Only one process writes a session, so the index is read once. */
  async #nextSeq(): Promise<number> {
    this.#seq ??= (await this.#read()).reduce((most, line) => Math.max(most, "seq" in line ? line.seq : 0), 0);
    return this.#seq + 1;
  }

  /** Lines that a crash has torn are passed over; none of them was promised to anybody. */
  async #read(): Promise<Line[]> {
    const text = await readFile(this.#index, "utf8").catch(absent);
    return (text ?? "").split("\n").flatMap((line) => {
      const json = parseJson(line);
      const parsed = json.ok ? lineSchema.safeParse(json.value) : undefined;
      return parsed?.success ? [parsed.data] : [];
    });
  }

  async #append(lines: readonly Line[]): Promise<void> {
    const { disk } = this.#options;
    await disk.mkdir(this.#folder);
    const start = (await endsTorn(this.#index)) ? "\n" : "";
    const fd = await disk.openAppend(this.#index);
    try {
      await disk.write(fd, Buffer.from(start + lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
      await disk.sync(fd);
    } finally {
      await disk.close(fd);
    }
    await disk.syncDirectory(this.#folder);
    for (const line of lines) if ("seq" in line) this.#seq = Math.max(this.#seq ?? 0, line.seq);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** What is at the path now; a link is itself, not what it points to. */
export async function entryAt(path: string): Promise<Entry> {
  const stat = await lstat(path).catch(absent);
  if (!stat) return { kind: "missing" };
  const mode = stat.mode & 0o7777;
  if (stat.isSymbolicLink()) return { kind: "link", target: await readlink(path) };
  if (stat.isDirectory()) return { kind: "folder", mode };
  if (!stat.isFile() || stat.size > MAX_TREE_BYTES) return { kind: "file", hash: "", mode };
  return { kind: "file", hash: sha256(await readFile(path)), mode };
}

/** The same thing with the same content; the mode counts where it is known. */
export function sameEntry(one: Entry, other: Entry): boolean {
  if (one.kind === "file" && other.kind === "file" && (one.mode === -1 || other.mode === -1)) {
    return one.hash === other.hash;
  }
  return JSON.stringify(one) === JSON.stringify(other);
}

interface Surveyed {
  readonly path: string;
  readonly kind: "file" | "link" | "folder";
  readonly mode: number;
}

/** Folders before what is in them. Refuses early: nothing is copied before all of it is known to fit. */
async function survey(paths: readonly string[]): Promise<Surveyed[]> {
  const found: Surveyed[] = [];
  let bytes = 0;
  const visit = async (path: string): Promise<void> => {
    const stat = await lstat(path).catch(absent);
    if (!stat) return;
    const kind = stat.isSymbolicLink() ? "link" : stat.isDirectory() ? "folder" : stat.isFile() ? "file" : undefined;
    if (kind === undefined) return;
    found.push({ path, kind, mode: stat.mode & 0o7777 });
    if (kind === "file") bytes += stat.size;
    if (bytes > MAX_TREE_BYTES || found.length > MAX_TREE_ENTRIES) throw tooMuch(paths);
    if (kind === "folder") for (const name of (await readdir(path)).sort()) await visit(join(path, name));
  };
  for (const path of paths) await visit(path);
  return found;
}

function tooMuch(paths: readonly string[]): TroupeError {
  const most = `${MAX_TREE_BYTES / 1024 / 1024} MiB or ${MAX_TREE_ENTRIES} files`;
  return new TroupeError("limit", `${paths.join(", ")}: more than ${most}, too much to keep a copy of.`, {
    hint: "It could not be undone, so a person has to agree to it or do it; smaller parts can be kept.",
  });
}

async function endsTorn(path: string): Promise<boolean> {
  const handle = await open(path, "r").catch(absent);
  if (!handle) return false;
  try {
    const { size } = await handle.stat();
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    return size > 0 && buffer[0] !== 0x0a;
  } finally {
    await handle.close();
  }
}

function absent(error: unknown): undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
  return undefined;
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** "created a.ts", for lists. */
export function describeChange({ path, before, after }: KeptChange): string {
  if (before.kind === "missing") return `created ${path}`;
  if (after?.kind === "missing") return `deleted ${path}`;
  return after === undefined ? `may have changed ${path}` : `changed ${path}`;
}
