/** The folder a session keeps beside its log: files, checkpoints, what was pasted. */
import * as z from "zod";
import type { Session } from "../../session/session.ts";
import { sessionDiff } from "../session-diff.ts";
import {
  folderOf,
  listCheckpoints,
  listSessionFiles,
  readSessionFile,
  sessionFilePath,
  writeSessionFile,
} from "../session-files.ts";
import { workspaceDiff } from "../workspace-diff.ts";
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

export const workspacesMethods: MethodTable = {
  "session.workspaces.getWorkspace": sessionMethod(nothing, (_, { session }) => ({
    workspace: workspaceOf(session),
    path: folderOf(session),
  })),
  "session.workspaces.listFiles": sessionMethod(nothing, async (_, { session }) => ({
    files: await listSessionFiles(session),
  })),
  "session.workspaces.readFile": sessionMethod(
    () => ({ path: z.string() }),
    async ({ path }, { session }) => ({ content: await readSessionFile(session, path) }),
  ),
  "session.workspaces.createFile": sessionMethod(
    () => ({ path: z.string(), content: z.string() }),
    async ({ path, content }, { session }) => {
      const { isNew } = await writeSessionFile(session, path, content);
      await session.say("session.workspace_file_changed", { path, operation: isNew ? "create" : "update" });
    },
  ),
  "session.workspaces.listCheckpoints": sessionMethod(nothing, async (_, { session }) => ({
    checkpoints: (await listCheckpoints(session)).map(({ content: _, ...checkpoint }) => checkpoint),
  })),
  "session.workspaces.readCheckpoint": sessionMethod(
    () => ({ number: z.number().int() }),
    async ({ number }, { session }) => {
      const found = (await listCheckpoints(session)).find((checkpoint) => checkpoint.number === number);
      return { content: found?.content ?? null };
    },
  ),
  "session.workspaces.diff": sessionMethod(
    () => ({ mode: z.enum(["unstaged", "branch", "session"]), ignoreWhitespace: z.boolean().default(false) }),
    async (wish, { session, signal }) => {
      const ofSession = wish.mode === "session" ? await sessionDiff(session, wish) : undefined;
      if (ofSession) return ofSession;
      const diff = await workspaceDiff(session.settings.cwd, { ...wish, signal });
      return wish.mode === "session" ? { ...diff, unavailableReason: "file-change-tracking-disabled" } : diff;
    },
  ),
  "session.workspaces.saveLargePaste": sessionMethod(
    () => ({ content: z.string() }),
    async ({ content }, { session }) => {
      const filename = `paste-${Date.now()}-${crypto.randomUUID().slice(0, 8)}.txt`;
      await writeSessionFile(session, filename, content);
      const filePath = sessionFilePath(session, filename);
      return { saved: { filePath, filename, sizeBytes: Buffer.byteLength(content) } };
    },
  ),
};

/** In the words of the file that lists read. */
export function workspaceOf(session: Session): object {
  const { context } = session.settings;
  const { cwd, gitRoot, repository, branch } = context;
  const [first, last] = [session.events[0], session.events.at(-1)];
  return {
    id: session.id,
    cwd,
    ...(gitRoot !== undefined && { git_root: gitRoot }),
    ...(repository !== undefined && { repository }),
    ...(branch !== undefined && { branch }),
    ...((session.name ?? session.title) !== undefined && { name: session.name ?? session.title }),
    user_named: session.name !== undefined,
    summary_count: session.events.filter((event) => event.type === "session.compaction_complete").length,
    ...(first && { created_at: first.timestamp }),
    ...(last && { updated_at: last.timestamp }),
  };
}
