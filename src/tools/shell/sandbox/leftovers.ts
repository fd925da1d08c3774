/** Data about what a sandboxed command may leave behind. */

/** An empty file or folder that exists only to mount something on it. */
export interface MountPoint {
  readonly path: string;
  /** A `commondir` file contains a single dot, which changes nothing for git. */
  readonly kind: "file" | "folder" | "commondir";
}

/** A protected name that was a symbolic link before the command ran: nothing can be mounted on a link. */
export interface ProtectedLink {
  readonly path: string;
  readonly target: string;
  /** Device and inode of the object at the end of the link, or an empty string. */
  readonly end: string;
  /** The real path there, or an empty string. */
  readonly real: string;
}

/** One workspace that commands could change, and the dangerous entries that were there before them. */
export interface KnownTree {
  readonly root: string;
  readonly gitFolders: readonly string[];
  /** Symbolic links in git folders, each followed by a null character and its target. */
  readonly gitLinks: readonly string[];
  /** Git folders outside the workspace that commands can write. */
  readonly linkedGit: readonly string[];
  readonly protectedNames: readonly string[];
  /** Folders that could not be listed. */
  readonly unreadable: readonly string[];
}

/** A folder whose name is not valid UTF-8, which no path can name. */
export interface Unnameable {
  readonly folder: string;
  /** The bytes of its name, as latin-1. */
  readonly name: string;
}

export interface LeftBehind {
  readonly points: readonly MountPoint[];
  readonly links: readonly ProtectedLink[];
  readonly trees: readonly KnownTree[];
  /** Entries found since, per tree. Without them the whole tree is searched. */
  readonly now?: readonly (KnownTree & { readonly unnameable: readonly Unnameable[] })[];
}
