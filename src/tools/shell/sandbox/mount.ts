/** One mount of a sandbox. */
export interface Mount {
  readonly kind: "bind" | "ro-bind" | "empty folder" | "empty file" | "scratch";
  readonly path: string;
  /** Not compared with the mount table: no command can change a parent folder of it, and it may be a link. */
  readonly unchecked?: true;
}

export const bind = (kind: "bind" | "ro-bind", path: string): Mount => ({ kind, path });
export const scratch = (path: string): Mount => ({ kind: "scratch", path });

/** Converts a caller's bubblewrap arguments to mounts. */
export function gitMounts(given: readonly string[]): Mount[] {
  const mounts: Mount[] = [];
  for (let index = 0; index < given.length; index += 3) {
    const [kind, path = ""] = given.slice(index);
    mounts.push({ kind: kind === "--bind" ? "bind" : "ro-bind", path });
  }
  return mounts;
}
