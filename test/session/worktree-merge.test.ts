import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Disk, nodeDisk } from "../../src/lib/node/disk.ts";
import { countOperations } from "../../src/testing/fault-disk.ts";
import { apply, recoverMerge, stage as stageFiles } from "../../src/worktrees/worktree-apply.ts";
import { mergeWorktree, recoverMerges } from "../../src/worktrees/worktree-merge.ts";
import { planMerge } from "../../src/worktrees/worktree-plan.ts";
import { knownRecord, openRecord } from "../../src/worktrees/worktree-records.ts";
import { discardWorktree } from "../../src/worktrees/worktree-remove.ts";
import { tipOf, worktreeState } from "../../src/worktrees/worktree-state.ts";
import { fingerprint, type WorktreeStage, worktreeStage } from "./worktree-stage.ts";

const START = { "a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", "folder/c.txt": "c\n", "run.sh": "#!/bin/sh\n" };

/** Changes of every kind: text, new, deleted, folder to file, mode, link, bytes. */
async function work(stage: WorktreeStage, taskId: string): Promise<string> {
  const { root } = await stage.make(taskId);
  rmSync(join(root, "folder"), { recursive: true });
  rmSync(join(root, "b.txt"));
  await stage.edit(taskId, {
    "a.txt": "ONE\ntwo\nthree\n",
    "new folder/x.bin": new Uint8Array([0, 255, 254, 10]),
    folder: "f\n",
  });
  await chmod(join(root, "run.sh"), 0o755);
  symlinkSync("a.txt", join(root, "link"));
  return root;
}

const FILES = ["a.txt", "b.txt", "folder", "folder/c.txt", "link", "new folder/x.bin", "run.sh"];
const withoutGit = (main: string) =>
  Object.fromEntries(Object.entries(fingerprint(main)).filter(([path]) => !path.startsWith(".git/")));

describe("merging a worktree", () => {
  it("merging a worktree copies every kind of change to the user's files, not to index and history", async () => {
    await using stage = await worktreeStage(START);
    const root = await work(stage, "one");
    await stage.write({ "mine.txt": "not yours\n" });
    const gitBefore = Object.entries(fingerprint(stage.main)).filter(([path]) => path.startsWith(".git/"));
    const result = await mergeWorktree({ ...stage.ports("one"), description: "Tidy up\nmore" });
    expect(result).toEqual({ kind: "merged", files: FILES });
    const { "mine.txt": mine, ...main } = withoutGit(stage.main);
    const { ".git": _, ...worktree } = withoutGit(root);
    expect(mine).toBeDefined();
    expect(main).toEqual(worktree);
    expect(Object.entries(fingerprint(stage.main)).filter(([path]) => path.startsWith(".git/"))).toEqual(gitBefore);
    expect(stage.git(["log", "-1", "--format=%an <%ae>%n%B"], root)).toBe(
      "Ada <ada@example.com>\nTidy up\n\nTask: one\n\n",
    );
    expect(stage.git(["status", "--porcelain"], root)).toBe("");
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "nothing" });
    rmSync(join(root, "link"));
    rmSync(join(root, "run.sh"));
    symlinkSync("link", join(root, "run.sh"));
    await stage.edit("one", { "a.txt": "ONE\nTWO\nthree\n", link: "no link\n" });
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "merged", files: ["a.txt", "link", "run.sh"] });
    expect(await stage.temp.read("my project/run.sh")).toBe("no link\n");
    expect(await discardWorktree(stage.ports("one"))).toEqual({ kind: "discarded" });
  });

  it("merging a worktree merges as one commit, or with the commits of the branch", async () => {
    await using stage = await worktreeStage(START);
    await work(stage, "squash");
    await stage.write({ "unrelated.txt": "mine\n" });
    const squashed = await mergeWorktree({ ...stage.ports("squash"), as: "squash" });
    expect(squashed).toMatchObject({ kind: "merged", commit: stage.git(["rev-parse", "HEAD"]).trim() });
    expect(stage.git(["status", "--porcelain"])).toBe("?? unrelated.txt\n");
    expect(stage.git(["log", "--format=%s"])).toBe("Work of agent squash\nfirst\n");
    const { branch } = await stage.make("forward");
    await stage.edit("forward", { "y.txt": "y\n" });
    await mergeWorktree({ ...stage.ports("forward"), as: "merge" });
    expect(stage.git(["rev-parse", "HEAD"])).toBe(stage.git(["rev-parse", branch]));
    await stage.make("beside");
    await stage.edit("beside", { "z.txt": "z\n" });
    stage.git(["commit", "-q", "--allow-empty", "-m", "meanwhile"]);
    await mergeWorktree({ ...stage.ports("beside"), as: "merge" });
    expect(stage.git(["log", "-1", "--format=%p"]).trim().split(" ")).toHaveLength(2);
    expect(stage.git(["status", "--porcelain"])).toBe("?? unrelated.txt\n");
  });

  it("merging a worktree changes nothing on a conflict, and shows both versions of each file", async () => {
    await using stage = await worktreeStage(START);
    await stage.make("one");
    await stage.edit("one", { "a.txt": "task\ntwo\nthree\n", "b.txt": "task\n", "new.txt": "task\n" });
    await stage.write({ "a.txt": "main\ntwo\nthree\n", "new.txt": "main\n" });
    rmSync(join(stage.main, "b.txt"));
    stage.git(["add", "-A"]);
    stage.git(["commit", "-q", "-m", "mine"]);
    const before = fingerprint(stage.main);
    expect((await worktreeState(stage.ports("one"))).conflicts).toEqual(["a.txt", "b.txt", "new.txt"]);
    const result = await mergeWorktree(stage.ports("one"));
    expect(fingerprint(stage.main)).toEqual(before);
    if (result.kind !== "conflict") throw new Error(result.kind);
    const versions = result.conflicts.map(({ path, main, task }) => [
      path,
      main && readFileSync(main, "utf8"),
      task && readFileSync(task, "utf8"),
    ]);
    expect(versions).toEqual([
      ["a.txt", "main\ntwo\nthree\n", "task\ntwo\nthree\n"],
      ["b.txt", undefined, "task\n"],
      ["new.txt", "main\n", "task\n"],
    ]);
  });

  it("merging a worktree does not touch files that the user changed, or that block it", async () => {
    await using stage = await worktreeStage({ ...START, ".gitignore": "ignored\n" });
    await stage.make("one");
    await stage.edit("one", { "a.txt": "ONE\ntwo\nthree\n", "ignored/x": "x\n", ".gitignore": "" });
    await stage.write({ "a.txt": "one\ntwo\nTHREE\n" });
    const dirty = fingerprint(stage.main);
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "dirty", files: ["a.txt"] });
    expect(fingerprint(stage.main)).toEqual(dirty);
    stage.git(["checkout", "-q", "a.txt"]);
    await stage.write({ "ignored/x": "mine\n" });
    const blocked = fingerprint(stage.main);
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "dirty", files: ["ignored/x"] });
    expect(fingerprint(stage.main)).toEqual(blocked);
  });

  it("merging a worktree that started from uncommitted changes merges into them without committing", async () => {
    await using stage = await worktreeStage(START);
    await stage.write({ "a.txt": "one\ntwo\nMINE\n" });
    await stage.make("one", { includeUncommitted: true });
    await stage.edit("one", { "a.txt": "TASK\ntwo\nMINE\n" });
    await expect(mergeWorktree({ ...stage.ports("one"), as: "squash" })).rejects.toThrow("uncommitted changes");
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "merged", files: ["a.txt"] });
    expect(readFileSync(join(stage.main, "a.txt"), "utf8")).toBe("TASK\ntwo\nMINE\n");
  });

  it("merging a worktree stores no uncommitted file of the user, and never replaces a .env file", async () => {
    await using stage = await worktreeStage({ "a.txt": "one\n", "b.txt": "one\n" });
    await stage.make("one");
    await stage.write({
      ".env": "CANARY-1\n",
      "conf/dev": "CANARY-2\n",
      "notes.txt": "CANARY-3\n",
      "b.txt": "CANARY-4\n",
    });
    symlinkSync("dev", join(stage.main, "conf/.env.local"));
    await stage.edit("one", { "a.txt": "two\n" });
    expect(await worktreeState(stage.ports("one"))).toMatchObject({ files: ["a.txt"] });
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "merged", files: ["a.txt"] });
    expect(stage.git(["cat-file", "--batch-all-objects", "--batch"])).not.toContain("CANARY");
    await stage.edit("one", { "b.txt": "of the agent\n" });
    expect(await mergeWorktree(stage.ports("one"))).toMatchObject({ kind: "conflict", conflicts: [{ path: "b.txt" }] });
    expect(stage.git(["cat-file", "--batch-all-objects", "--batch"])).not.toContain("CANARY");
    await stage.edit("one", { "b.txt": "one\n", ".env": "of the agent\n", "conf/dev": "of the agent\n" });
    expect(await mergeWorktree(stage.ports("one"))).toMatchObject({ kind: "dirty", files: [".env", "conf/dev"] });
    expect(readFileSync(join(stage.main, ".env"), "utf8")).toBe("CANARY-1\n");
  });

  it("a worktree shows what the agent did: commits, files, and a bounded diff", async () => {
    await using stage = await worktreeStage(START);
    const { root } = await stage.make("one");
    await stage.edit("one", { "a.txt": "ONE\ntwo\nthree\n" });
    stage.git(["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "step"], root);
    await stage.edit("one", { "n.txt": `\u001b[31mred\n${"long line\n".repeat(1000)}` });
    const state = await worktreeState({ ...stage.ports("one"), maxDiffCharacters: 900 });
    expect(state).toMatchObject({
      ahead: 1,
      uncommitted: ["n.txt"],
      files: ["a.txt", "n.txt"],
      conflicts: [],
      dirty: [],
      isDiffCut: true,
    });
    expect(state.diff).toContain("+ONE");
    expect(state.diff).not.toContain("\u001b");
    expect(state.diff.length).toBeLessThanOrEqual(900);
  });

  it("merging a worktree moves only the task's branch, and follows no link", async () => {
    await using stage = await worktreeStage(START);
    const { root, gitDir } = await stage.make("one");
    const head = stage.git(["rev-parse", "main"]);
    await stage.temp.files({ "my project/.git/worktrees/one/HEAD": "ref: refs/heads/main\n" });
    await stage.edit("one", { "a.txt": "ONE\ntwo\nthree\n" });
    expect(await mergeWorktree(stage.ports("one"))).toMatchObject({ kind: "merged" });
    expect(stage.git(["rev-parse", "main"])).toBe(head);
    expect(stage.git(["branch", "--show-current"], root).trim()).toBe("troupe/0123abcd/one");
    await stage.temp.files({ precious: "precious\n" });
    rmSync(join(gitDir, "index"));
    symlinkSync(stage.temp.at("precious"), join(gitDir, "index"));
    await stage.edit("one", { "a.txt": "again\ntwo\nthree\n" });
    await expect(mergeWorktree(stage.ports("one"))).rejects.toThrow("is no longer a regular file");
    expect(await stage.temp.read("precious")).toBe("precious\n");
  });
});

/** The short version kills at every third operation. */
const STRIDE = process.env.TROUPE_SLOW === undefined ? 3 : 1;

describe("an interrupted merge", () => {
  it("an interrupted merge leaves the state before it, wherever it was killed", async () => {
    await using stage = await worktreeStage(START);
    await work(stage, "one");
    const ports = { folder: stage.folder, disk: nodeDisk };
    const record = await openRecord(await knownRecord(stage.folder, "one"));
    const tip = await tipOf(record, ports);
    const { changes } = await planMerge(record, { ...ports, tip, onto: "files" });
    const { files } = await stageFiles(record, { changes, ports });
    const journal = { version: 1, direction: "forward", ...record.main, merged: tip.head, files } as const;
    const before = fingerprint(stage.main);
    const reset = async (): Promise<void> => {
      for (const path of ["folder", "link", "new folder"])
        rmSync(join(stage.main, path), { recursive: true, force: true });
      await stage.write(START);
      await chmod(join(stage.main, "run.sh"), 0o644);
      rmSync(join(stage.folder, ".state/one/merge.json"), { force: true });
      for (const name of readdirSync(stage.main)) if (isTemporary(name)) rmSync(join(stage.main, name));
    };
    const counted = countOperations(nodeDisk);
    await apply(record, { ...journal, files: [...files] }, { ...ports, disk: counted.disk });
    const after = fingerprint(stage.main);
    expect(after).not.toEqual(before);
    let unfinished = 0;
    for (let at = 1; at <= counted.operations.length; at += STRIDE) {
      await reset();
      expect(fingerprint(stage.main)).toEqual(before);
      let count = 0;
      const bury = await killedWhen(
        () => ++count >= at,
        (disk) => apply(record, { ...journal, files: [...files] }, { ...ports, disk }),
      );
      const isBegun = existsSync(join(stage.folder, ".state/one/merge.json"));
      if (isBegun && JSON.stringify(fingerprint(stage.main)) !== JSON.stringify(after)) unfinished++;
      const recovered = await recoverMerge(record, ports);
      expect(recovered, `killed at ${at}`).toEqual(isBegun ? expect.objectContaining({ kind: "applied" }) : undefined);
      expect(withoutTemporaries(fingerprint(stage.main)), `killed at ${at}`).toEqual(isBegun ? after : before);
      await bury();
    }
    expect(unfinished).toBeGreaterThan(10 / STRIDE);
  });

  it("an interrupted merge is reverted when someone changes a file meanwhile, and keeps that change", async () => {
    await using stage = await worktreeStage(START);
    await work(stage, "one");
    let counter = 0;
    const disk: Disk = {
      ...nodeDisk,
      async rename(from, to) {
        if (isTemporary(basename(from)) && counter++ === 0) await stage.write({ "run.sh": "#!/bin/sh\n# mine\n" });
        await nodeDisk.rename(from, to);
      },
    };
    const before = fingerprint(stage.main);
    const result = await mergeWorktree({ ...stage.ports("one"), disk });
    expect(result).toMatchObject({
      kind: "taken-back",
      because: expect.stringContaining("run.sh was changed by another program"),
    });
    const { "run.sh": mine, ...rest } = fingerprint(stage.main);
    expect({ ...before, "run.sh": mine }).toEqual({ ...rest, "run.sh": mine });
    expect(await stage.temp.read("my project/run.sh")).toContain("# mine");
  });

  it("an interrupted merge restores files and index when the branch cannot move", async () => {
    await using stage = await worktreeStage(START);
    await work(stage, "one");
    const before = withoutGit(stage.main);
    await stage.write({ ".git/refs/heads/main.lock": "" });
    const result = await mergeWorktree({ ...stage.ports("one"), as: "squash" });
    expect(result).toMatchObject({ kind: "taken-back", because: expect.stringContaining("main.lock") });
    expect(withoutGit(stage.main)).toEqual(before);
    expect(stage.git(["status", "--porcelain"])).toBe("");
    rmSync(join(stage.main, ".git/refs/heads/main.lock"));
    expect(await mergeWorktree({ ...stage.ports("one"), as: "squash" })).toMatchObject({ kind: "merged" });
  });

  it("an interrupted merge is finished by the next merge, commit included", async () => {
    await using stage = await worktreeStage(START);
    await work(stage, "one");
    const bury = await killedWhen(atFirstFile, (disk) => mergeWorktree({ ...stage.ports("one"), as: "squash", disk }));
    rmSync(join(stage.folder, ".state/merge.lock"), { force: true }); // its owner would be dead
    expect(await recoverMerges({ folder: stage.folder, disk: nodeDisk })).toEqual(["one"]);
    expect(stage.git(["log", "--format=%s"])).toBe("Work of agent one\nfirst\n");
    expect(stage.git(["status", "--porcelain", "--", "a.txt", "folder", "run.sh", "link"])).toBe("");
    expect(await recoverMerges({ folder: stage.folder, disk: nodeDisk })).toEqual([]);
    await stage.edit("one", { "a.txt": "more\n", "b.txt": "again\n" });
    const buryAgain = await killedWhen(atFirstFile, (disk) => mergeWorktree({ ...stage.ports("one"), disk }));
    rmSync(join(stage.folder, ".state/merge.lock"), { force: true });
    expect(await discardWorktree(stage.ports("one"))).toEqual({ kind: "discarded" });
    expect(await stage.temp.read("my project/b.txt")).toBe("again\n");
    await bury();
    await buryAgain();
  });
});

/** As a write is called before it is finished; an old one is swept away. */
const isTemporary = (name: string): boolean => /^\.troupe-\w+\.tmp$/.test(name);

const withoutTemporaries = (found: Record<string, string>) =>
  Object.fromEntries(Object.entries(found).filter(([path]) => !isTemporary(basename(path))));

/**
 * Runs until the disk dies; from then on nothing happens any more, as in a killed process. What it resolves with lets
 * go of what the run still holds open.
 */
function dying(
  make: (die: () => Promise<never>) => Disk,
  run: (disk: Disk) => Promise<unknown>,
): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const waiting: ((reason: Error) => void)[] = [];
    const bury = async (): Promise<void> => {
      isOver = true;
      for (const fail of waiting) fail(new Error("dead"));
      await running.catch(() => undefined);
    };
    const die = (): Promise<never> => {
      resolve(bury);
      return new Promise((_, fail) => (isOver ? fail(new Error("dead")) : waiting.push(fail)));
    };
    const running = run(make(die));
    running.then(
      () => resolve(bury),
      (error: unknown) => !isOver && reject(error),
    );
  });
}

type Last = (operation: string, values: readonly unknown[]) => boolean;

function killedWhen(isLast: Last, run: (disk: Disk) => Promise<unknown>): Promise<() => Promise<void>> {
  let isDead = false;
  return dying((die) => {
    const entries = Object.entries(nodeDisk).map(([name, operation]) => [
      name,
      (...values: unknown[]) => {
        isDead ||= isLast(name, values);
        return isDead ? die() : (operation as (...all: unknown[]) => unknown)(...values);
      },
    ]);
    return Object.fromEntries(entries) as unknown as Disk;
  }, run);
}

/** The first file of the person is about to change. */
const atFirstFile: Last = (operation, [from]) => operation === "rename" && isTemporary(basename(String(from)));
