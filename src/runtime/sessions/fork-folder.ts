import { join, resolve } from "node:path";

/** The folder of a fork's worktree. It is not in the state folder, which tools may not change. */
export const forkFolder = (home: string, sessionId: string): string =>
  join(`${resolve(home)}-work`, "forks", sessionId);
