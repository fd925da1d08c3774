/**
 * Keeps the working folder of a session where every worker finds it: as commits under `refs/troupe/<session>/<number>` of
 * its repository. The log names the one that counts. Nothing is pushed while nothing changes. Ignored files, `.env` files
 * and nested repositories do not travel; the log lists them.
 */

import { join } from "node:path";
import type { EffectGuard } from "../../lib/effect-guard.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { type GitCheckout, gitAt } from "../../lib/node/git-write.ts";
import type { EventData } from "../../protocol/event.ts";
import { changesIn, secretPaths, snapshotTree } from "../../worktrees/worktree-snapshot.ts";
import { BASE_REF, FETCH_MS, KEPT_REF, PROTOCOLS, refsOf } from "./checkout.ts";

export type KeptWorkspace = EventData<"troupe.workspace_kept">;

export interface WorkspaceKeeperOptions {
  readonly workTree: string;
  readonly sessionId: string;
  /** The one that counts now. */
  readonly kept: KeptWorkspace | undefined;
  readonly effects: EffectGuard;
  readonly disk: Disk;
  /** Stores that this one counts from now on. */
  store(kept: KeptWorkspace): Promise<unknown>;
  report(line: string): void;
}

/** Shortest time between two pushes at ends of turns. */
const SHORTEST_PAUSE_MS = 5_000;
/** Looking for changes and pushing take at most this part of the time. */
const TIME_SHARE = 1 / 20;
const PRUNE_EVERY = 20;
const MAX_LEFT_BEHIND = 50;
const MAX_LIST_BYTES = 256 * 1024;
const author = { name: "troupe", email: "troupe@localhost" };

export class WorkspaceKeeper {
  readonly #options: WorkspaceKeeperOptions;
  readonly #checkout: GitCheckout;
  readonly #prefix: string;
  #number: number;
  #known: string | undefined;
  #running: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #nextAt = performance.now() + SHORTEST_PAUSE_MS;
  readonly #end = new AbortController();

  constructor(options: WorkspaceKeeperOptions) {
    const { workTree, sessionId, kept } = options;
    this.#options = options;
    this.#checkout = { gitDir: join(workTree, ".git"), workTree };
    this.#prefix = refsOf(sessionId);
    // A fork begins with the folder of the other session.
    this.#number = kept?.ref.startsWith(this.#prefix) ? Number(kept.ref.slice(this.#prefix.length)) : 0;
  }

  /** Keeps the folder at the end of a turn, unless that was done a short while ago: then a little later. */
  soon(): void {
    this.#timer ??= setTimeout(
      () => void this.keep().catch((error: Error) => this.#report(error)),
      Math.max(0, this.#nextAt - performance.now()),
    ).unref();
  }

  /** Keeps the folder now, if it has changed. Does not throw. */
  async keepIfPossible(): Promise<void> {
    await this.keep().catch((error: Error) => this.#report(error));
  }

  /** Keeps the folder now, if it has changed. */
  keep(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const next = this.#running.catch(() => undefined).then(() => this.#keep());
    this.#running = next;
    return next;
  }

  /** Pushes the folder as the beginning of another session. Returns the ref. */
  async sendTo(sessionId: string): Promise<string> {
    await this.keep();
    const kept = await this.#git(["rev-parse", "--verify", "--quiet", `${KEPT_REF}^{commit}`], [0, 1]);
    const trees = kept === "" ? [] : (await this.#git(["rev-parse", `${kept}^{tree}`, "HEAD^{tree}"])).split("\n");
    const ref = `${refsOf(sessionId)}0`;
    // Without changes it begins with the session's own commit, so that its branch can be merged.
    const commit = kept === "" || trees[0] === trees[1] ? "HEAD" : kept;
    await this.#pushTo(ref, commit);
    return ref;
  }

  /** Fetches what another session has kept. Returns the branch, or the ref if it cannot be fetched. */
  async take({ ref, commit }: KeptWorkspace, branch: string): Promise<string> {
    try {
      await this.#git(["fetch", "--quiet", "origin", ref]);
      const [tree, own] = (await this.#git(["rev-parse", `${commit}^{tree}`, `${commit}^^{tree}`])).split("\n");
      // Without uncommitted changes the agent's own last commit is enough.
      await this.#git(["branch", "--force", "--no-track", branch, tree === own ? `${commit}^` : commit]);
      return branch;
    } catch (error) {
      this.#report(error as Error);
      return ref;
    }
  }

  /** Keeps the folder at the end of an activation and removes refs that no longer count. */
  async finish(): Promise<void> {
    await this.keep();
    if (this.#number > 1) await this.#prune();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#end.abort();
  }

  #report(error: Error): void {
    this.#options.report(`${this.#options.sessionId}: cannot move files through the repository: ${error.message}`);
  }

  async #keep(): Promise<void> {
    const begun = performance.now();
    try {
      const head = await this.#git(["rev-parse", "HEAD"]);
      const branch = await this.#git(["symbolic-ref", "--quiet", "--short", "HEAD"], [0, 1]);
      const { tree, leftBehind } = await this.#snapshot(head);
      const key = `${head} ${tree}`;
      this.#known ??= await this.#lastKey();
      if (key === this.#known) return;
      await this.#push({ head, tree, branch, leftBehind });
      this.#known = key;
    } finally {
      const tookMs = performance.now() - begun;
      this.#nextAt = performance.now() + Math.max(SHORTEST_PAUSE_MS, tookMs / TIME_SHARE);
    }
  }

  /** Returns the commit and the tree that were kept last, here or by another worker, or those of the beginning. */
  async #lastKey(): Promise<string> {
    const kept = await this.#git(["rev-parse", "--verify", "--quiet", `${KEPT_REF}^{commit}`], [0, 1]);
    const [head, tree] = kept === "" ? [BASE_REF, `${BASE_REF}^{tree}`] : [`${kept}^`, `${kept}^{tree}`];
    return (await this.#git(["rev-parse", head, tree])).split("\n").join(" ");
  }

  async #snapshot(head: string): Promise<{ tree: string; leftBehind: readonly string[] }> {
    const indexFile = join(this.#checkout.gitDir, "troupe-index");
    try {
      const { paths, unmerged, nested } = await changesIn(this.#checkout, { signal: this.#end.signal });
      const secret = secretPaths(this.#checkout, paths);
      const own = [...paths, ...unmerged].filter((path) => !secret.has(path));
      const tree = await snapshotTree(this.#checkout, { commit: head, paths: own, indexFile });
      return { tree, leftBehind: [...secret, ...nested] };
    } finally {
      await this.#options.disk.remove(indexFile).catch(() => undefined);
    }
  }

  async #push(what: { head: string; tree: string; branch: string; leftBehind: readonly string[] }): Promise<void> {
    const { sessionId, store } = this.#options;
    const { head, tree, branch } = what;
    const commit = await this.#git(["commit-tree", tree, "-p", head, "-m", `Session ${sessionId}`]);
    const ref = `${this.#prefix}${this.#number + 1}`;
    await this.#pushTo(ref, commit);
    const all = [...what.leftBehind, ...(await this.#ignored())];
    const leftBehind = all.slice(0, MAX_LEFT_BEHIND);
    await store({ ref, commit, ...(branch !== "" && { branch }), leftBehind, leftBehindCount: all.length });
    await this.#git(["update-ref", KEPT_REF, commit]);
    this.#number++;
    if (this.#number % PRUNE_EVERY === 0) await this.#prune();
  }

  /** A worker that was replaced must not overwrite what another one has pushed. */
  async #pushTo(ref: string, commit: string): Promise<void> {
    await this.#options.effects.run({ name: "git push", isOfWorker: true }, this.#end.signal, () =>
      this.#git(["push", "--quiet", "--force", "origin", `${commit}:${ref}`]),
    );
  }

  async #ignored(): Promise<readonly string[]> {
    const args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
    const how = { maxBytes: MAX_LIST_BYTES, whenTooMuch: "cut", signal: this.#end.signal } as const;
    return (await gitAt(this.#checkout, args, how)).stdout.split("\0").filter((path) => path !== "");
  }

  /** Removes all refs of the session but the last two. The one before may be read right now. */
  async #prune(): Promise<void> {
    const listing = await this.#git(["ls-remote", "origin", `${this.#prefix}*`]).catch(() => "");
    const refs = listing.split("\n").map((line) => line.split("\t")[1] ?? "");
    const old = refs.filter((ref) => ref.startsWith(this.#prefix) && isBefore(ref, this.#prefix, this.#number - 1));
    if (old.length === 0) return;
    await this.#git(["push", "--quiet", "origin", ...old.map((ref) => `:${ref}`)]).catch(() => undefined);
  }

  async #git(args: readonly string[], accept: readonly number[] = [0]): Promise<string> {
    const how = { timeoutMs: FETCH_MS, author, protocols: PROTOCOLS, accept, signal: this.#end.signal };
    return (await gitAt(this.#checkout, args, how)).stdout.trim();
  }
}

const isBefore = (ref: string, prefix: string, number: number): boolean => Number(ref.slice(prefix.length)) < number;
