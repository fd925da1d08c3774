import type { PathState } from "./checkpoint-schema.ts";
import { contentOf, sha256 } from "./checkpoint-tree.ts";
import type { Checkpoints } from "./checkpoints.ts";

export interface LineChanges {
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

const MAX_BYTES = 1024 * 1024;
/** Limit for all contents compared for one list. */
const MAX_BYTES_IN_ALL = 32 * 1024 * 1024;

/** Reads the text of files before and after changes, within size limits. */
export class StoredTexts {
  readonly #checkpoints: Checkpoints;
  #left = MAX_BYTES_IN_ALL;

  constructor(checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints;
  }

  /**
   * Returns the text of an entry, or undefined if it is unavailable, too large or binary. Contents after a change are
   * not stored themselves: they come from the next change's checkpoint, or from disk if it was the last change.
   */
  async of(entry: PathState, path: string): Promise<string | undefined> {
    if (entry.kind === "missing") return "";
    if (entry.kind !== "file" || this.#left <= 0) return undefined;
    const kept = await this.#checkpoints.object(entry.hash).catch(() => undefined);
    const content = kept ?? (await contentOf(path).catch(() => undefined));
    if (!content || sha256(content) !== entry.hash || content.length > MAX_BYTES || content.includes(0)) {
      return undefined;
    }
    this.#left -= content.length;
    return content.toString("utf8");
  }

  async lines(before: PathState, after: PathState, path: string): Promise<LineChanges> {
    const [old, made] = [await this.of(before, path), await this.of(after, path)];
    if (old === undefined || made === undefined || old === made) return { linesAdded: 0, linesRemoved: 0 };
    if (old === "") return { linesAdded: linesIn(made), linesRemoved: 0 };
    if (made === "") return { linesAdded: 0, linesRemoved: linesIn(old) };
    const { diffLines } = await import("diff");
    const parts = diffLines(old, made, { timeout: 200 }) ?? [];
    const sum = (kind: "added" | "removed"): number =>
      parts.reduce((lines, part) => lines + (part[kind] ? (part.count ?? 0) : 0), 0);
    return { linesAdded: sum("added"), linesRemoved: sum("removed") };
  }
}

const linesIn = (text: string): number => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
