/**
 * Names in a workspace that run code or change rules later. File tools, merges of worktrees and the sandbox all use
 * these lists. The first three lists apply in every folder of a workspace, not only at its top.
 */

/** Folders that are protected with their contents, besides `.git`. */
export const PROTECTED_FOLDERS: readonly string[] = [".troupe", ".vscode", ".idea"];

export const PROTECTED_FILES: readonly string[] = [".mcp.json", ".envrc", ".gitmodules"];

/** Folders of which only these entries are protected, each with its contents. The rest stays writable. */
export const PROTECTED_PARTS: Readonly<Record<string, readonly string[]>> = {
  ".github": ["hooks", "copilot", "extensions", "mcp.json"],
  ".claude": ["hooks", "settings.json", "settings.local.json"],
};

/** Examples of environment files, without values. */
export const HARMLESS_ENVIRONMENT_FILE = /\.(example|sample|template|dist|schema)$/i;

/** Returns whether files with this name usually hold secrets. Commands in the sandbox cannot read them. */
export const isEnvironmentFile = (name: string): boolean =>
  name.startsWith(".env") && name !== ".envrc" && !HARMLESS_ENVIRONMENT_FILE.test(name);

/** Entries of a git folder that make git run programs. A missing one must not be created either. */
export const GIT_INTERNALS = {
  folders: ["hooks"],
  files: ["config", "config.worktree", "info/attributes"],
  /** In the git folder of a linked worktree: they determine its repository. */
  linkedFiles: ["commondir", "gitdir", "config.worktree"],
} as const;
