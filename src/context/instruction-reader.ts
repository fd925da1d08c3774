/**
 * Reads instruction files. Reads only text, up to a limit, and never outside the folder a file belongs to. A reader
 * remembers the texts that were claimed, so that each is used once.
 */
import { createHash } from "node:crypto";
import { dirname, relative, sep } from "node:path";
import { parseFrontmatter } from "../lib/frontmatter.ts";
import { isInside, type OpenedEntry, openForReading, PathError } from "../lib/node/paths.ts";
import { quoted } from "../lib/quoting.ts";
import { clip, sanitise } from "../lib/text.ts";
import { exists } from "./instruction-files.ts";
import { importedPaths, isHidden } from "./instruction-imports.ts";

/** The origin of a text: the user's (state root or a named folder), or the project's, by location. */
export type InstructionScope = "user" | "directory" | "repository" | "working-directory";

/** A possible instruction file. It may not exist. */
export interface InstructionCandidate {
  readonly path: string;
  readonly scope: InstructionScope;
  /** Real paths that the file must not lead out of. Empty means anywhere, for the user's own files. */
  readonly roots: readonly string[];
  /** Real path that its imports must not lead out of. */
  readonly importRoot: string;
}

export interface InstructionText {
  readonly path: string;
  /** The path for the model: relative to the working directory if the file is below it. */
  readonly shownPath: string;
  readonly scope: InstructionScope;
  /** Quoted. Never empty. */
  readonly body: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Size of the file on disk. */
  readonly bytes: number;
  readonly importedBy?: string;
  /** Identify the file and its text, to skip duplicates. */
  readonly keys: readonly string[];
  readonly found: InstructionCandidate;
}

export interface ReaderOptions {
  readonly cwd: string;
  /** Returns false for a path that the session's tools may not read. */
  readonly mayRead?: (path: string) => boolean;
  readonly onNotice: (notice: string) => void;
}

const MAX_FILE_BYTES = 32 * 1024;
const MAX_IMPORT_DEPTH = 5;
const MAX_IMPORTS = 20;
const MAX_SHOWN_CHARACTERS = 300;
/** Maximum number of reads for an agent, with those at the start of its session. */
const MAX_READS = 1_000;
const MAX_MENTIONS = 64;

export class InstructionReader {
  readonly #options: ReaderOptions;
  readonly #seen = new Set<string>();
  readonly #claimedPaths = new Set<string>();
  #importsLeft = MAX_IMPORTS;
  #readsLeft = MAX_READS;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Returns a reader with the same claims, which has read as much. What one does later does not affect the other. */
  fork(): InstructionReader {
    const fork = new InstructionReader(this.#options);
    for (const key of this.#seen) fork.#seen.add(key);
    for (const path of this.#claimedPaths) fork.#claimedPaths.add(path);
    fork.#importsLeft = this.#importsLeft;
    fork.#readsLeft = this.#readsLeft;
    return fork;
  }

  /**
   * Returns a file's text, or `undefined` if it is missing, empty, not text, denied or already claimed. Reports a
   * refusal as a notice.
   */
  async read(found: InstructionCandidate, importedBy?: string): Promise<InstructionText | undefined> {
    const shownPath = this.shown(found.path);
    if (this.#readsLeft <= 0) {
      // Negative once the notice was given.
      if (this.#readsLeft-- === 0)
        this.#options.onNotice(`More than ${MAX_READS} instruction files were found; the others were not read.`);
      return undefined;
    }
    this.#readsLeft--;
    if (found.scope !== "user" && this.#options.mayRead?.(found.path) === false) {
      this.#options.onNotice(`${shownPath} was not read: a rule denies reading it.`);
      return undefined;
    }
    const opened = await this.#open(found, shownPath);
    if (opened === undefined) return undefined;
    const file = await contentOf(opened, shownPath, this.#options.onNotice);
    if (file === undefined) return undefined;
    const { data, body: behind, problem } = await parseFrontmatter(file.text);
    if (problem) this.#options.onNotice(`${shownPath}, line ${problem.line}: ${sanitise(problem.message)}`);
    // Broken frontmatter is shown as text: the file may only start with a horizontal rule.
    const body = quoted(problem ? file.text : behind).trim();
    const keys = [file.identity, createHash("sha256").update(body).digest("base64")];
    if (body === "" || keys.some((key) => this.#seen.has(key))) return undefined;
    const { path, scope } = found;
    return { path, shownPath, scope, body, data, bytes: file.bytes, keys, found, ...(importedBy && { importedBy }) };
  }

  /** Claims a text. Returns false if the same file or text was claimed before. */
  claim(text: InstructionText): boolean {
    if (text.keys.some((key) => this.#seen.has(key))) return false;
    for (const key of text.keys) this.#seen.add(key);
    this.#claimedPaths.add(text.path);
    return true;
  }

  /** Returns a claimed file followed by the files it imports by `@path`. */
  async withImports(text: InstructionText, depth = 0): Promise<InstructionText[]> {
    const all = [text];
    for (const path of importedPaths(text.body, dirname(text.path)).slice(0, MAX_MENTIONS)) {
      const imported = await this.#import(path, text, depth + 1);
      if (imported !== undefined) all.push(...(await this.withImports(imported, depth + 1)));
    }
    return all;
  }

  async #import(path: string, from: InstructionText, depth: number): Promise<InstructionText | undefined> {
    if (this.#claimedPaths.has(path) || !exists(path)) return undefined;
    const refusal = this.#refusalOf(path, from.found, depth);
    if (refusal !== undefined) {
      this.#options.onNotice(`${from.shownPath} imports ${this.shown(path)}, which was not read: ${refusal}.`);
      return undefined;
    }
    const { importRoot } = from.found;
    const text = await this.read({ ...from.found, path, roots: [importRoot] }, from.shownPath);
    if (text === undefined || !this.claim(text)) return undefined;
    this.#importsLeft--;
    return text;
  }

  #refusalOf(path: string, { importRoot }: InstructionCandidate, depth: number): string | undefined {
    if (!isInside(path, [importRoot])) return "it is outside the folder of the importing file";
    if (isHidden(relative(importRoot, path))) return "hidden files are not imported";
    if (this.#options.mayRead?.(path) === false) return "reading it is denied";
    if (depth > MAX_IMPORT_DEPTH) return `imports can be nested ${MAX_IMPORT_DEPTH} levels deep at most`;
    return this.#importsLeft > 0 ? undefined : `at most ${MAX_IMPORTS} files are imported`;
  }

  shown(path: string): string {
    const { cwd } = this.#options;
    const name = isInside(path, [cwd]) ? relative(cwd, path).replaceAll(sep, "/") : path;
    return clip(sanitise(name).replace(/\s+/g, " "), MAX_SHOWN_CHARACTERS);
  }

  async #open(found: InstructionCandidate, shownPath: string): Promise<OpenedEntry | undefined> {
    const { cwd, onNotice } = this.#options;
    try {
      const opened = await openForReading(found.path, { cwd, roots: found.roots });
      if (opened.kind === "file") return opened;
      await opened.handle.close();
    } catch (error) {
      if (!(error instanceof PathError)) throw error;
      if (error.problem === "outside")
        onNotice(`${shownPath} was not read: it is a link to a place outside its folder.`);
      else if (error.problem !== "missing") onNotice(`${shownPath} was not read: ${sanitise(error.message)}`);
    }
    return undefined;
  }
}

async function contentOf(
  { handle, stat }: OpenedEntry,
  shownPath: string,
  onNotice: (notice: string) => void,
): Promise<{ text: string; bytes: number; identity: string } | undefined> {
  try {
    const buffer = Buffer.alloc(Math.min(stat.size, MAX_FILE_BYTES));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    const text = decoded(buffer.subarray(0, bytesRead), stat.size > bytesRead);
    if (text === undefined) {
      onNotice(`${shownPath} was not read: it is not UTF-8 text.`);
      return undefined;
    }
    const isCut = stat.size > MAX_FILE_BYTES;
    if (isCut) onNotice(`${shownPath} has ${stat.size} bytes: only the first ${MAX_FILE_BYTES} are used.`);
    const mark = `\n[Cut here by troupe: ${MAX_FILE_BYTES} of ${stat.size} bytes.]`;
    return { text: isCut ? text + mark : text, bytes: stat.size, identity: `${stat.dev}:${stat.ino}` };
  } finally {
    await handle.close();
  }
}

/** Returns `undefined` for bytes that are not UTF-8 text. `isCut` allows an incomplete character at the end. */
function decoded(bytes: Uint8Array, isCut: boolean): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return undefined;
  }
}
