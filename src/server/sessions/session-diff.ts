/** The changes that a session made since it began, in the form that `workspace-diff` uses for git. */
import { isAbsolute, relative, sep } from "node:path";
import { type ChangedFile, changedFiles } from "../../checkpoints/code-changes.ts";
import type { FileHistory } from "../../checkpoints/file-history.ts";
import { StoredTexts } from "../../checkpoints/stored-texts.ts";
import type { Session } from "../../session/session.ts";
import { type Change, clipDiff, type WorkspaceDiff } from "./workspace-diff.ts";

const COMPARE = { context: 3, timeout: 500, maxEditLength: 20_000 } as const;

interface SessionPaths {
  readonly files: Pick<FileHistory, "checkpoints"> | undefined;
}

/** Returns undefined if the session has no file history. */
export async function sessionDiff(
  session: { readonly record: SessionPaths; readonly workspace: Pick<Session["workspace"], "directory"> },
  { ignoreWhitespace }: { readonly ignoreWhitespace: boolean },
): Promise<WorkspaceDiff | undefined> {
  const { files } = session.record;
  const { directory } = session.workspace;
  if (!files) return undefined;
  const texts = new StoredTexts(files.checkpoints);
  const root = directory.gitRoot ?? directory.cwd;
  const changes: Change[] = [];
  for (const file of await changedFiles(files)) {
    const change = await changeOf(file, { texts, root, ignoreWhitespace });
    if (change) changes.push(change);
  }
  return { requestedMode: "session", mode: "session", changes, isFallback: false };
}

interface DiffContext {
  readonly texts: Pick<StoredTexts, "of">;
  readonly root: string;
  readonly ignoreWhitespace: boolean;
}

/** Returns undefined if only white space differs and that is ignored. */
export async function changeOf(
  { path: whole, before, now }: ChangedFile,
  context: DiffContext,
): Promise<Change | undefined> {
  const path = displayPath(whole, context.root);
  const changeType = before.kind === "missing" ? "added" : now.kind === "missing" ? "deleted" : "modified";
  const old = await context.texts.of(before, whole);
  const made = await context.texts.of(now, whole);
  const mode =
    changeType === "added" ? "new file mode 100644\n" : changeType === "deleted" ? "deleted file mode 100644\n" : "";
  const head = `diff --git a/${path} b/${path}\n${mode}`;
  if (old === undefined || made === undefined) return { path, changeType, diff: `${head}Binary files differ\n` };
  const { structuredPatch, formatPatch, OMIT_HEADERS } = await import("diff");
  const options = { ...COMPARE, ignoreWhitespace: context.ignoreWhitespace };
  const patch = structuredPatch(path, path, old, made, undefined, undefined, options);
  if (!patch) return { path, changeType, diff: head, isTruncated: true };
  if (patch.hunks.length === 0 && changeType === "modified") return undefined; // only white space differs
  const names = `--- ${changeType === "added" ? "/dev/null" : `a/${path}`}\n+++ ${changeType === "deleted" ? "/dev/null" : `b/${path}`}\n`;
  return {
    path,
    changeType,
    ...clipDiff(head + (patch.hunks.length > 0 ? names + formatPatch(patch, OMIT_HEADERS) : "")),
  };
}

function displayPath(path: string, root: string): string {
  const way = relative(root, path);
  const isInside = way !== "" && !isAbsolute(way) && way !== ".." && !way.startsWith(`..${sep}`);
  return (isInside ? way : path).replaceAll(sep, "/");
}
