/**
 * The pipeline of every file change: read, plan, store the previous content, write. The plan is computed twice: first
 * for the permission request, then again from fresh content under a lock on its paths. The rest of this folder parses
 * patches and edits text.
 */
import { defined } from "../../lib/defined.ts";
import { openForWriting, removeEmptyFolders, type WriteTarget } from "../../lib/node/paths-write.ts";
import type { Access } from "../../protocol/permission.ts";
import { type FileChange, type FileState, type Files, filesOf, hashOf, MAX_EDIT_BYTES } from "../files/files.ts";
import { pathFailure } from "../files/path-failure.ts";
import { isInPlace, textOf, unsavedContent } from "../text-buffers.ts";
import type { ToolContext } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import { boundDiff, fileDiff } from "./file-diff.ts";

/** A path and its current content. */
export interface CurrentFile {
  /** Absolute, as the caller wrote it. */
  readonly path: string;
  readonly realPath: string;
  readonly before: "missing" | CurrentContent;
}

interface CurrentContent {
  readonly content: Buffer;
  readonly mode: number;
  readonly state: FileState;
  /** True when a client has unsaved changes; this is the unsaved content. */
  readonly isUnsaved: boolean;
}

export interface Planned {
  readonly found: CurrentFile;
  readonly after: "missing" | Buffer;
  /** The source file, for a move. */
  readonly movedFrom?: CurrentFile;
}

export interface ChangeRequest {
  readonly intention: string;
  /** Every path the plan may read. */
  readonly paths: readonly string[];
  /** The name of the tool, when its errors quote the current content. */
  readonly shownBy?: string;
  /**
   * Computes the changes from the current content; changes nothing. Throws a `ToolError` when they are not possible.
   */
  plan(look: (path: string) => Promise<CurrentFile>, files: Files): Promise<readonly Planned[]>;
}

/** Returns the writes of the request, with a diff for each file. */
export async function accessFor(request: ChangeRequest, context: ToolContext): Promise<Access[]> {
  const files = filesOf(context);
  const refused = await refusedPaths(request, context, files);
  if (refused.length > 0) {
    return refused.map((path) => ({ kind: "write" as const, path, intention: request.intention, diff: "" }));
  }
  return await withTargets({ request, context, files }, async (look) => {
    const planned = await request.plan(look, files);
    refuseTooLarge(planned);
    files.intend(
      context.toolCallId,
      planned.map(({ found }) => found.realPath),
    );
    return await Promise.all(
      planned.map(async (one) => ({
        kind: "write" as const,
        path: one.found.realPath,
        ...(one.found.path !== one.found.realPath && { written: one.found.path }),
        intention: request.intention,
        diff: await diffOf(one, context.cwd),
      })),
    );
  });
}

/**
 * Returns the paths that must not be written or read. Permission is requested for these alone, without reading them. So
 * the refusal is an ordinary decision, and an approval still fails when the request is carried out.
 */
async function refusedPaths(request: ChangeRequest, context: ToolContext, files: Files): Promise<string[]> {
  const refused = new Set<string>();
  const reasonToRefuse = (realPath: string): string | undefined => {
    const reason = files.reasonToRefuse(realPath);
    if (reason !== undefined) refused.add(realPath);
    return reason;
  };
  for (const path of request.paths) {
    if (request.shownBy !== undefined && context.reading?.denies(path, request.shownBy)) refused.add(path);
    // Other errors of a path are reported when it is read.
    const target = await openForWriting(path, { ...scopeOf(context, files), reasonToRefuse }).catch(() => undefined);
    await target?.close();
  }
  return [...refused];
}

/** Applies the request completely or not at all. Returns the diff. */
export async function changeFiles(
  request: ChangeRequest,
  context: ToolContext,
): Promise<{ planned: readonly Planned[]; diff: string }> {
  const files = filesOf(context);
  const locked = await Promise.all(request.paths.map((path) => realPathOf(path, context, files)));
  const { signal, lockWait: onWait } = context;
  return await files.alone(locked, { signal, onWait }, () =>
    withTargets({ request, context, files, locked }, async (look, targetOf) => {
      const planned = await request.plan(look, files);
      refuseTooLarge(planned);
      refuseUnlessIntended(planned, files.intended(context.toolCallId));
      const diffs = await Promise.all(planned.map((one) => diffOf(one, context.cwd)));
      const changes = planned.map((one) => changeOf(one, targetOf(one.found), context.toolCallId));
      context.signal.throwIfAborted();
      await files.checkpoint(changes).catch(notKept);
      await writeAll(planned, { targetOf, context, files });
      return { planned, diff: boundDiff(diffs.join("")) };
    }),
  );
}

/** Throws when the file has changed since this agent read it. */
export function refuseStale({ path, realPath, before }: CurrentFile, files: Files): void {
  const known = files.lastRead(realPath);
  if (before === "missing" || known === undefined || known.hash === before.state.hash) return;
  const writer = files.writerOf(realPath, before.state.hash);
  const who = writer === undefined ? "" : ` by agent "${writer}"`;
  throw new ToolError(
    `${path} was changed${who} since you last read it, so nothing was written. View it again, then repeat the change.`,
  );
}

/** Throws when a whole file would be replaced or removed that this agent has not read. */
export function refuseUnread(found: CurrentFile, files: Files): void {
  refuseStale(found, files);
  if (found.before === "missing" || files.lastRead(found.realPath) !== undefined) return;
  throw new ToolError(
    `${found.path} already exists and you have not read it, so it was not changed. View it first, or change parts of it with edit.`,
  );
}

export function missing(path: string): ToolError {
  return new ToolError(`Path ${path} does not exist. Please provide a valid path.`);
}

type Look = (path: string) => Promise<CurrentFile>;
type TargetOf = (found: CurrentFile) => WriteTarget;

/** Keeps every file open until `work` is done, and reads each file once. */
async function withTargets<T>(
  given: { request: ChangeRequest; context: ToolContext; files: Files; locked?: readonly string[] },
  work: (look: Look, targetOf: TargetOf) => Promise<T>,
): Promise<T> {
  const { context, files, locked } = given;
  const targets = new Map<string, WriteTarget>();
  const looked = new Map<string, CurrentFile>();
  const look: Look = async (path) => {
    const target = await openForWriting(path, scopeOf(context, files)).catch(pathFailure);
    const known = looked.get(target.realPath);
    if (known) {
      await target.close();
      return { ...known, path: target.path };
    }
    targets.set(target.realPath, target);
    if (locked && !locked.includes(target.realPath)) throw leadsElsewhere(target.path);
    const found = { path: target.path, realPath: target.realPath, before: await contentOf(target, context) };
    looked.set(target.realPath, found);
    return found;
  };
  const targetOf: TargetOf = ({ realPath }) => {
    const target = targets.get(realPath);
    if (!target) throw new Error(`${realPath} is planned, but nobody looked at it`);
    return target;
  };
  try {
    return await work(look, targetOf);
  } finally {
    await Promise.all([...targets.values()].map((target) => target.close()));
  }
}

async function contentOf({ stat, realPath, read }: WriteTarget, context: ToolContext): Promise<CurrentFile["before"]> {
  if (!stat) return "missing";
  const saved = await read(MAX_EDIT_BYTES).catch(pathFailure);
  const unsaved = await unsavedContent({ realPath, stat, content: saved }, context);
  const content = unsaved ?? saved;
  const state = { size: stat.size, mtimeMs: stat.mtimeMs, hash: hashOf(content) };
  return { content, mode: stat.mode & 0o7777, state, isUnsaved: unsaved !== undefined };
}

async function realPathOf(path: string, context: ToolContext, files: Files): Promise<string> {
  const target = await openForWriting(path, scopeOf(context, files)).catch(pathFailure);
  await target.close();
  return target.realPath;
}

const scopeOf = ({ cwd, roots }: ToolContext, files: Files) => ({ cwd, roots, reasonToRefuse: files.reasonToRefuse });

function refuseTooLarge(planned: readonly Planned[]): void {
  for (const { found, after } of planned) {
    if (after === "missing" || after.length <= MAX_EDIT_BYTES) continue;
    throw new ToolError(`${found.path} would have ${after.length} bytes; at most ${MAX_EDIT_BYTES} can be written.`);
  }
}

function refuseUnlessIntended(planned: readonly Planned[], intended: readonly string[] | undefined): void {
  const stray = planned.find(({ found }) => intended && !intended.includes(found.realPath));
  if (stray) throw leadsElsewhere(stray.found.path);
}

function leadsElsewhere(path: string): ToolError {
  return new ToolError(`Path ${path} no longer leads to the file that was checked. Try again.`);
}

function changeOf({ found, after }: Planned, target: WriteTarget, toolCallId: string): FileChange {
  return {
    path: found.realPath,
    toolCallId,
    before: found.before,
    after: after === "missing" ? after : { hash: hashOf(after) },
    madeFolders: target.missingFolders,
  };
}

function notKept(error: unknown): never {
  const reason = error instanceof Error ? error.message : String(error);
  throw new ToolError(`Nothing was changed, because the previous content could not be saved: ${reason}`, {
    cause: error,
  });
}

async function writeAll(
  planned: readonly Planned[],
  { targetOf, context, files }: { targetOf: TargetOf; context: ToolContext; files: Files },
): Promise<void> {
  const done: Planned[] = [];
  try {
    for (const one of planned) {
      await writeOne(one, targetOf(one.found), { context, files });
      done.push(one);
    }
  } catch (error) {
    const left = await restore(done.reverse(), { targetOf, context, files });
    if (left.length === 0) return pathFailure(error);
    const reason = error instanceof Error ? error.message : String(error);
    throw new ToolError(`${reason} These files were changed before and could not be restored: ${left.join(", ")}.`);
  }
}

async function writeOne(
  { found, after, movedFrom }: Planned,
  target: WriteTarget,
  { context, files }: { context: ToolContext; files: Files },
): Promise<void> {
  if (after === "missing") {
    await target.remove();
    files.noteWritten(found.realPath, "missing");
    return;
  }
  if (await writtenByHolder(found, after, { target, context, files })) return;
  const from = movedFrom?.before;
  const mode = from === undefined || from === "missing" ? {} : { mode: from.mode };
  const { size, mtimeMs } = await target.write(after, mode);
  files.noteWritten(found.realPath, { size, mtimeMs, hash: hashOf(after) });
}

/**
 * Writes through the client that has unsaved changes, so that there is one version. Returns false when the client did
 * not write.
 */
async function writtenByHolder(
  { realPath, path, before }: CurrentFile,
  after: Buffer,
  { target, context, files }: { target: WriteTarget; context: ToolContext; files: Files },
): Promise<boolean> {
  const text = textOf(after);
  if (before === "missing" || !before.isUnsaved || !context.buffers || !target.stat || text === undefined) return false;
  if (!(await isInPlace(realPath, target.stat))) throw leadsElsewhere(path);
  if (!(await context.buffers.write(realPath, text, context.signal))) return false;
  const written = await openForWriting(realPath, scopeOf(context, files)).catch(pathFailure);
  try {
    if (written.realPath !== realPath) throw leadsElsewhere(path);
    const now = await contentOf(written, context);
    files.noteWritten(realPath, now === "missing" ? now : now.state);
    return true;
  } finally {
    await written.close();
  }
}

/** Restores the previous content. Returns the paths where that failed. */
async function restore(
  done: readonly Planned[],
  { targetOf, context, files }: { targetOf: TargetOf; context: ToolContext; files: Files },
): Promise<string[]> {
  const left: string[] = [];
  for (const { found } of done) {
    const scope = scopeOf(context, files);
    try {
      const target = await openForWriting(found.realPath, scope);
      try {
        if (found.before === "missing") {
          await target.remove();
          files.noteWritten(found.realPath, "missing");
        } else {
          const { size, mtimeMs } = await target.write(found.before.content, { mode: found.before.mode });
          files.noteWritten(found.realPath, { size, mtimeMs, hash: found.before.state.hash });
        }
      } finally {
        await target.close();
      }
      if (found.before === "missing") await removeEmptyFolders(targetOf(found).missingFolders, scope);
    } catch {
      left.push(found.path);
    }
  }
  return left;
}

function diffOf({ found, after, movedFrom }: Planned, cwd: string): Promise<string> {
  const origin = movedFrom ?? found;
  return fileDiff({
    path: found.path,
    cwd,
    before: origin.before === "missing" ? null : origin.before.content,
    after: after === "missing" ? null : after,
    ...defined({ movedFrom: movedFrom?.path }),
  });
}
