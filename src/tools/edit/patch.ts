/** The steps of a parsed patch, the same for both notations. */
import { ToolError } from "../tool-error.ts";

export type PatchStep =
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  /** Has hunks when the patch shows the deleted content. */
  | { readonly kind: "delete"; readonly path: string; readonly hunks: readonly Hunk[] }
  | { readonly kind: "update"; readonly path: string; readonly moveTo?: string; readonly hunks: readonly Hunk[] };

export interface Hunk {
  /** 1-based line of the patch, for errors. */
  readonly patchLine: number;
  readonly lines: readonly HunkLine[];
  /** Lines of the file to find first, from `@@ class Name`. */
  readonly anchors: readonly string[];
  /** 1-based line of the file where the hunk should be. */
  readonly startLine?: number;
  /** The hunk ends at the end of the file. */
  readonly atEnd: boolean;
  /** Set when the patch states whether the new file ends with a line break. */
  readonly finalBreak?: boolean;
}

export interface HunkLine {
  readonly kind: "keep" | "remove" | "add";
  readonly text: string;
}

export function badPatch(patchLine: number, message: string): ToolError {
  return new ToolError(`The patch cannot be read, line ${patchLine}: ${message} Nothing was changed.`);
}
