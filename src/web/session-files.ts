/** Files that a session changed: diffs, undo, worktrees of its agents, and forks with the files of an earlier moment. */
import { basename, join, relative, sep } from "node:path";
import { entryAt } from "../checkpoints/checkpoint-tree.ts";
import { Checkpoints, type StoredChange } from "../checkpoints/checkpoints.ts";
import { takeSteps } from "../checkpoints/restore-steps.ts";
import { StoredTexts } from "../checkpoints/stored-texts.ts";
import { undo } from "../checkpoints/undo.ts";
import type { Disk } from "../lib/node/disk.ts";
import { isEnvironmentFile } from "../lib/protected-names.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import { mayFork } from "../runtime/permissions/fork-files.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { forkFolder } from "../runtime/sessions/fork-folder.ts";
import { undoSeal } from "../runtime/undo-seal.ts";
import { mergeWorktree } from "../worktrees/worktree-merge.ts";
import { discardWorktree, listWorktrees } from "../worktrees/worktree-remove.ts";
import { worktreeState } from "../worktrees/worktree-state.ts";
import { createWorktree } from "../worktrees/worktrees.ts";
import type { ChangeStep, WorktreeRow } from "./api.ts";
import type { OpenSessions } from "./open-sessions.ts";
import { holdingProcess } from "./session-holder.ts";

export interface FileParts {
  readonly runtime: Runtime;
  readonly openSessions: OpenSessions;
  readonly disk: Disk;
  readonly stamp: Stamp;
}

/** Names a worktree of a session: of a task, or of the session itself if it is a fork. */
interface TreeName {
  readonly taskId: string;
  readonly isFork: boolean;
}

const MAX_STEPS = 500;
const COMPARE = { context: 3, timeout: 500, maxEditLength: 20_000 } as const;

export class SessionFiles {
  readonly #parts: FileParts;

  constructor(parts: FileParts) {
    this.#parts = parts;
  }

  /** Returns the changes that are not undone, the last one first. */
  async changes(sessionId: string): Promise<readonly ChangeStep[]> {
    const checkpoints = this.#checkpoints(sessionId);
    const texts = new StoredTexts(checkpoints);
    const { structuredPatch, formatPatch, OMIT_HEADERS } = await import("diff");
    const steps: ChangeStep[] = [];
    for (const change of (await allChanges(checkpoints)).reverse()) {
      if (steps.length >= MAX_STEPS) break;
      const { seq, time, turn, toolCallId, path, before, after } = change;
      const old = await texts.of(before, path);
      const made = after ? await texts.of(after, path) : undefined;
      const patch =
        old === undefined || made === undefined
          ? undefined
          : structuredPatch(path, path, old, made, undefined, undefined, COMPARE);
      const kind = before.kind === "missing" ? "added" : after?.kind === "missing" ? "deleted" : "modified";
      const diff = patch ? formatPatch(patch, OMIT_HEADERS) : undefined;
      steps.push({ seq, time, turn, toolCallId, path, kind, diff });
    }
    return steps;
  }

  /** Restores the files to their state before this call. Everything later is undone too. */
  async undo(sessionId: string, toolCallId: string, force: boolean): Promise<object> {
    await this.#requireRest(sessionId);
    const target = { kind: "back-to", toolCallId } as const;
    return undo(target, { checkpoints: this.#checkpoints(sessionId), disk: this.#parts.disk, force });
  }

  async worktrees(sessionId: string): Promise<readonly WorktreeRow[]> {
    return [...(await this.#rows(sessionId, true)), ...(await this.#rows(sessionId, false))];
  }

  async #rows(sessionId: string, isFork: boolean): Promise<readonly WorktreeRow[]> {
    const folder = this.#treeFolder(sessionId, isFork);
    const { disk, runtime } = this.#parts;
    const rows: WorktreeRow[] = [];
    for (const { taskId, root, branch, state } of await listWorktrees({ folder }).catch(() => [])) {
      if (taskId === undefined) continue;
      const about = { taskId, isFork, root, branch: branch ?? "", state };
      const found =
        state === "ready"
          ? await worktreeState({ folder, taskId, disk, stateRoot: runtime.home }).catch(() => undefined)
          : undefined;
      const { files = [], conflicts = [], dirty = [], diff = "", ahead = 0 } = found ?? {};
      rows.push({ ...about, files, conflicts, dirty, diff, ahead, isProtected: (found?.guarded.length ?? 0) > 0 });
    }
    return rows;
  }

  /** Merges as uncommitted changes, for review. Protected names are never merged from here. */
  async merge(sessionId: string, { taskId, isFork }: TreeName): Promise<object> {
    const { disk, runtime } = this.#parts;
    const folder = this.#treeFolder(sessionId, isFork);
    return mergeWorktree({ folder, taskId, disk, stateRoot: runtime.home, as: "files" });
  }

  async discard(sessionId: string, { taskId, isFork }: TreeName, force: boolean): Promise<object> {
    return discardWorktree({ folder: this.#treeFolder(sessionId, isFork), taskId, disk: this.#parts.disk, force });
  }

  /**
   * Creates a session with the conversation up to and including an event, and a worktree with the files as they were then.
   * Nothing is run again. Outside a repository there is no worktree: the fork works in the same folder.
   */
  async fork(
    sessionId: string,
    eventId: string,
  ): Promise<{ sessionId: string; cwd: string | undefined; notice?: string }> {
    const { runtime, openSessions } = this.#parts;
    const point = await this.#pointAt(sessionId, eventId);
    const toEventId = point.next === undefined ? {} : { toEventId: point.next };
    const { sessionId: forkId } = await runtime.forkSession({ sessionId, ...toEventId });
    if (point.cwd === undefined) return { sessionId: forkId, cwd: undefined };
    try {
      const cwd = await this.#filesAt(sessionId, { forkId, cwd: point.cwd, time: point.time });
      await openSessions.openIn(forkId, cwd);
      return { sessionId: forkId, cwd };
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      return { sessionId: forkId, cwd: undefined, notice: `The files were not forked: ${error.message}` };
    }
  }

  /** The event behind it, its time, and the folder in which the session works. */
  async #pointAt(sessionId: string, eventId: string) {
    let time: string | undefined;
    let cwd: string | undefined;
    let next: string | undefined;
    for await (const event of this.#parts.runtime.store.events(sessionId)) {
      if (time !== undefined) {
        next = event.id;
        break;
      }
      if (event.type === "session.start") cwd = event.data.context?.cwd;
      if (event.type === "session.context_changed") cwd = event.data.cwd;
      if (event.id === eventId) time = event.timestamp;
    }
    if (time === undefined) throw new TroupeError("usage", "The session has no such event now: it was rewound.");
    return { next, time, cwd };
  }

  /** Makes the worktree, then takes back in it what the session changed later. Returns the folder to work in. */
  async #filesAt(sessionId: string, at: { forkId: string; cwd: string; time: string }): Promise<string> {
    const { disk } = this.#parts;
    const { forkId, cwd, time } = at;
    const folder = this.#treeFolder(forkId, true);
    const mayCopy = mayFork({ stateRoot: this.#parts.runtime.home, cwd, disk });
    const origin = { repository: cwd, includeUncommitted: true, mayCopy };
    const tree = await createWorktree({ ...origin, folder, sessionId: forkId, taskId: "fork", disk });
    const top = tree.cwd === tree.root ? cwd : cwd.slice(0, cwd.length - relative(tree.root, tree.cwd).length - 1);
    const checkpoints = this.#checkpoints(sessionId);
    const later = (await allChanges(checkpoints)).filter((change) => change.time > time);
    const steps = new Map<string, Parameters<typeof takeSteps>[0][number]>();
    for (const { path, before } of later) {
      const mapped = join(tree.root, relative(top, path));
      // The first later change knows the state at that moment.
      if (steps.has(mapped) || !path.startsWith(`${top}${sep}`)) continue;
      if (isLeftOut(relative(top, path)) || !mayCopy(path)) continue;
      const goal = before.kind === "file" && before.mode === -1 ? { ...before, mode: 0o644 } : before;
      steps.set(mapped, { path: mapped, goal, now: await entryAt(mapped), isDone: false, isOurs: true });
    }
    await takeSteps([...steps.values()], { checkpoints, disk, folders: [] });
    return tree.cwd;
  }

  /** Throws while the session is at work, here or elsewhere: it must not go on with files that change under it. */
  async #requireRest(sessionId: string): Promise<void> {
    const { openSessions } = this.#parts;
    const holder = await holdingProcess(this.#parts.runtime.home, sessionId);
    const isBusy = openSessions.isOpen(sessionId)
      ? ((await openSessions.request(sessionId, "session.metadata.isProcessing", {})) as { processing?: boolean })
          .processing
      : holder !== undefined;
    if (!isBusy) return;
    throw new TroupeError("failed", "The session is busy.", { hint: "Stop it first, then undo." });
  }

  #checkpoints(sessionId: string): Checkpoints {
    const { disk, stamp, runtime } = this.#parts;
    const seal = undoSeal({ stateRoot: runtime.home, disk });
    return new Checkpoints({ directory: this.#folder(sessionId), disk, stamp, seal });
  }

  #folder(sessionId: string): string {
    return join(this.#parts.runtime.home, "session-state", sessionId);
  }

  #treeFolder(sessionId: string, isFork: boolean): string {
    return isFork ? forkFolder(this.#parts.runtime.home, sessionId) : join(this.#folder(sessionId), "worktrees");
  }
}

/** Returns whether a fork does without this path: git's own files, which the fork shares, and `.env` files. */
const isLeftOut = (path: string): boolean => path.split(sep).includes(".git") || isEnvironmentFile(basename(path));

/** Changes that are not undone and files that commands created, in the order in which they were recorded. */
async function allChanges(checkpoints: Checkpoints): Promise<StoredChange[]> {
  const all = [...(await checkpoints.changes()), ...(await checkpoints.creations())];
  return all.sort((one, other) => one.seq - other.seq);
}
