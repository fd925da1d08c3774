import { join, resolve } from "node:path";

/** The folder of a fork's worktree. It is not in the state folder, which tools may not change. */
export const forkFolder = (stateRoot: string, sessionId: string): string =>
  join(`${resolve(stateRoot)}-work`, "forks", sessionId);
