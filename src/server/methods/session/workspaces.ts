/** The folder that a session has beside its log: files, checkpoints, pasted content. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { sessionDiff } from "../../sessions/session-diff.ts";
import { makeFolder, removeEntry, renameEntry, statEntry } from "../../sessions/session-entries.ts";
import {
  folderOf,
  listCheckpoints,
  listSessionFiles,
  readObjective,
  readSessionFile,
  removeObjective,
  sessionFilePath,
  writeObjective,
  writeSessionFile,
} from "../../sessions/session-files.ts";
import { workspaceDiff } from "../../sessions/workspace-diff.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const onePath = () => ({ path: z.string().min(1) });

export const workspacesMethods: MethodTable = {
  "session.workspaces.getWorkspace": sessionMethod(nothing, (_, { session }) => ({
    workspace: workspaceOf(session),
    path: folderOf(session),
  })),
  "session.workspaces.ensure": sessionMethod(nothing, (_, { session }) => ({
    workspace: workspaceOf(session),
    path: folderOf(session),
  })),
  "session.workspaces.updateMetadata": sessionMethod(
    () => ({ name: z.string().trim().min(1).max(500).optional() }),
    async ({ name }, { session }) => {
      if (name !== undefined) await session.record.rename(name);
      return { workspace: workspaceOf(session), path: folderOf(session) };
    },
  ),
  "session.workspaces.readAutopilotObjective": sessionMethod(nothing, async (_, { session }) => ({
    content: (await readObjective(session)) ?? null,
  })),
  "session.workspaces.autopilotObjectiveExists": sessionMethod(nothing, async (_, { session }) => ({
    exists: (await readObjective(session)) !== undefined,
  })),
  "session.workspaces.writeAutopilotObjective": sessionMethod(
    () => ({ content: z.string() }),
    async ({ content }, { session }) => {
      const { isNew } = await writeObjective(session, content);
      const operation = isNew ? "create" : "update";
      await session.record.emit("session.autopilot_objective_changed", { operation });
      return { operation };
    },
  ),
  "session.workspaces.deleteAutopilotObjective": sessionMethod(nothing, async (_, { session }) => {
    const deleted = await removeObjective(session);
    if (deleted) await session.record.emit("session.autopilot_objective_changed", { operation: "delete" });
    return { deleted };
  }),
  // Only compaction creates summaries: each replaces a part of the conversation.
  "session.workspaces.addSummary": sessionMethod(
    () => ({ title: z.string(), content: z.string() }),
    () => {
      throw new TroupeError("usage", "Summaries are written by compaction.", { hint: "Use session.history.compact." });
    },
  ),
  "session.workspaces.truncateSummaries": sessionMethod(
    () => ({ keepCount: z.number() }),
    () => {
      throw new TroupeError("usage", "Summaries cannot be removed.", {
        hint: "Use session.history.rewindTo to go back.",
      });
    },
  ),
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
      await session.record.emit("session.workspace_file_changed", { path, operation: isNew ? "create" : "update" });
    },
  ),
  "session.workspaces.statFile": sessionMethod(onePath, async ({ path }, { session }) => {
    const stat = await statEntry(session, path);
    const { size, mtimeMs, birthtimeMs } = stat;
    return { isFile: stat.isFile(), isDirectory: stat.isDirectory(), size, mtimeMs, birthtimeMs };
  }),
  "session.workspaces.createDirectory": sessionMethod(
    () => ({ ...onePath(), recursive: z.boolean().default(false) }),
    ({ path, recursive }, { session }) => makeFolder(session, path, recursive),
  ),
  "session.workspaces.removePath": sessionMethod(
    () => ({ ...onePath(), recursive: z.boolean().default(false), force: z.boolean().default(false) }),
    ({ path, ...how }, { session }) => removeEntry(session, path, how),
  ),
  "session.workspaces.renamePath": sessionMethod(
    () => ({ source: z.string().min(1), destination: z.string().min(1) }),
    ({ source, destination }, { session }) => renameEntry(session, source, destination),
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
    async (query, { session, signal }) => {
      const ofSession = query.mode === "session" ? await sessionDiff(session, query) : undefined;
      if (ofSession) return ofSession;
      const diff = await workspaceDiff(session.workspace.cwd, { ...query, signal });
      return query.mode === "session" ? { ...diff, unavailableReason: "file-change-tracking-disabled" } : diff;
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

/** Returns the workspace in the form of the file that lists read. */
export function workspaceOf(session: Session): object {
  const { cwd, gitRoot, repository, branch } = session.workspace.directory;
  const [first, last] = [session.events[0], session.events.at(-1)];
  const name = session.record.name ?? session.record.title;
  return {
    id: session.id,
    cwd,
    ...defined({ git_root: gitRoot, repository, branch, name }),
    user_named: session.record.name !== undefined,
    summary_count: session.events.filter((event) => event.type === "session.compaction_complete").length,
    ...defined({ created_at: first?.timestamp, updated_at: last?.timestamp }),
  };
}
