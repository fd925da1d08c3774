/** A patch in either notation, as one list of steps. */
import { ToolError } from "../tool-error.ts";

export type PatchStep =
  | { readonly kind: "add"; readonly path: string; readonly text: string }
  /** With hunks, when the patch shows what is deleted. */
  | { readonly kind: "delete"; readonly path: string; readonly hunks: readonly Hunk[] }
  | { readonly kind: "update"; readonly path: string; readonly moveTo?: string; readonly hunks: readonly Hunk[] };

export interface Hunk {
  /** 1-based line of the patch, for failures. */
  readonly patchLine: number;
  readonly lines: readonly HunkLine[];
  /** Lines of the file to look for first, from `@@ class Name`. */
  readonly anchors: readonly string[];
  /** 1-based line of the file where the hunk should be. */
  readonly startLine?: number;
  /** The hunk ends where the file ends. */
  readonly atEnd: boolean;
  /** Set when the patch says whether the new file ends with a line break. */
  readonly finalBreak?: boolean;
}

export interface HunkLine {
  readonly kind: "keep" | "remove" | "add";
  readonly text: string;
}

export function badPatch(patchLine: number, message: string): ToolError {
  return new ToolError(`The patch cannot be read, line ${patchLine}: ${message} Nothing was changed.`);
}
