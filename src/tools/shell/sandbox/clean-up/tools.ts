import type * as nodeFs from "node:fs";
import type * as nodePath from "node:path";

/** Modules and lists that the functions use; their source texts must not refer to an import. */
export interface CleanUpTools {
  readonly fs: typeof nodeFs;
  readonly path: Pick<typeof nodePath, "basename" | "dirname" | "isAbsolute" | "join" | "resolve" | "sep">;
  /** Protected names below the top of a workspace. */
  readonly names: readonly string[];
  /** Protected parts of folders. */
  readonly parts: Readonly<Record<string, readonly string[]>>;
  readonly pathFlag: number;
}
