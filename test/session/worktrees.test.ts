import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { GitFailure } from "../../src/lib/node/git-write.ts";
import { faultDisk } from "../../src/testing/fault-disk.ts";
import { explainFailure } from "../../src/worktrees/worktree-git.ts";
import { mergeWorktree } from "../../src/worktrees/worktree-merge.ts";
import { discardWorktree, listWorktrees } from "../../src/worktrees/worktree-remove.ts";
import { worktreeState } from "../../src/worktrees/worktree-state.ts";
import { createWorktree } from "../../src/worktrees/worktrees.ts";
import { hostileRepository } from "../git/hostile-repository.ts";
import { fingerprint, runGitPlainly, worktreeStage } from "./worktree-stage.ts";

describe("a worktree for an agent", () => {
  it("a worktree for an agent starts from HEAD on its own branch, and changes nothing else", async () => {
    await using stage = await worktreeStage({ "a.txt": "one\n", "sub dir/b.txt": "two\n" });
    const before = fingerprint(stage.main);
    const made = await stage.make("fix-parser", { repository: join(stage.main, "sub dir") });
    const root = join(stage.folder, "fix-parser");
    expect(made).toEqual({
      taskId: "fix-parser",
      root,
      cwd: join(root, "sub dir"),
      branch: "troupe/0123abcd/fix-parser",
      base: stage.git(["rev-parse", "HEAD"]).trim(),
      gitDir: join(stage.main, ".git/worktrees/fix-parser"),
      notices: [],
    });
    expect(readFileSync(join(root, "sub dir/b.txt"), "utf8")).toBe("two\n");
    expect(stage.git(["status", "--porcelain"], root)).toBe("");
    expect(stage.git(["branch", "--show-current"], root).trim()).toBe(made.branch);
    expect(fingerprint(stage.main)).toEqual(before);
  });

  it("an agent in a worktree is told about changes of the main tree that it does not see", async () => {
    await using stage = await worktreeStage();
    await stage.write({ "a.txt": "changed\n", "new.txt": "new\n" });
    const { root, notices } = await stage.make("one");
    expect(notices).toEqual(["The main tree has uncommitted changes in 2 file(s); this worktree starts without them."]);
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("one\n");
    expect(existsSync(join(root, "new.txt"))).toBe(false);
  });

  it("a worktree for an agent can start from uncommitted changes, without ignored files", async () => {
    await using stage = await worktreeStage({ "a.txt": "one\n", "gone.txt": "x\n", ".gitignore": "*.log\n" });
    await stage.write({ "a.txt": "staged\n", "new file.txt": "new\n", "big.log": "log\n" });
    stage.git(["add", "a.txt"]);
    await stage.write({ "a.txt": "changed\n" });
    rmSync(join(stage.main, "gone.txt"));
    const before = fingerprint(stage.main);
    const { root } = await stage.make("one", { includeUncommitted: true });
    expect(fingerprint(stage.main)).toEqual(before);
    expect(stage.git(["status", "--porcelain"], root)).toBe("");
    expect(stage.git(["ls-files"], root).split("\n")).toEqual([".gitignore", "a.txt", "new file.txt", ""]);
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("changed\n");
  });

  it("a worktree for an agent is reused when it is requested twice", async () => {
    await using stage = await worktreeStage();
    const first = await stage.make("one");
    await stage.edit("one", { "a.txt": "work\n" });
    expect(await stage.make("one")).toEqual(first);
    expect(readFileSync(join(first.root, "a.txt"), "utf8")).toBe("work\n");
  });

  it("a worktree for an agent works from a linked worktree and in a shallow clone", async () => {
    await using stage = await worktreeStage();
    await stage.write({ "a.txt": "two\n" });
    stage.git(["commit", "-qam", "second"]);
    stage.git(["worktree", "add", "-q", "-b", "side", stage.temp.at("side")]);
    const linked = await stage.make("one", { repository: stage.temp.at("side") });
    expect(linked.gitDir).toBe(join(stage.main, ".git/worktrees/one"));
    stage.git(["clone", "-q", "--depth", "1", `file://${stage.main}`, stage.temp.at("shallow")]);
    const shallow = await stage.make("two", { repository: stage.temp.at("shallow") });
    expect(readFileSync(join(shallow.root, "a.txt"), "utf8")).toBe("two\n");
  });

  it("the reason why no worktree can be created is reported", async () => {
    await using stage = await worktreeStage({});
    await expect(stage.make("one")).rejects.toThrow("has no commit yet");
    await expect(stage.make("one", { repository: stage.temp.path })).rejects.toThrow("is not in a git repository");
    stage.git(["init", "-q", "--bare", stage.temp.at("bare.git")]);
    await expect(stage.make("one", { repository: stage.temp.at("bare.git") })).rejects.toThrow("bare repository");
    stage.git(["commit", "-q", "--allow-empty", "-m", "first"]);
    await expect(stage.make("one", { base: "nope" })).rejects.toThrow("Could not find the commit nope");
    await expect(stage.make("one", { folder: join(stage.main, "x") })).rejects.toThrow("inside the work tree itself");
    await expect(stage.make("../one")).rejects.toThrow("cannot be the id of a task");
    await expect(stage.make("one", { signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: "interrupted" });
    const full = explainFailure(
      new GitFailure("fatal: write error: No space left on device", "refused"),
      "create a worktree",
    );
    expect(full).toMatchObject({ kind: "storage", message: "Could not create a worktree: the disk is full." });
    expect(stage.git(["branch", "--list", "troupe/*"])).toBe("");
  });

  it("a worktree for an agent runs no program that a hostile repository names", async () => {
    await using stage = await worktreeStage();
    const hostile = await hostileRepository(stage.temp);
    await expect(stage.make("one", { repository: hostile.path })).rejects.toThrow("are not downloaded");
    const careful = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "user.name=a", "user.email=a@example.com"];
    const plain = (...args: string[]) =>
      runGitPlainly([...careful.flatMap((set) => ["-c", set]), ...args], hostile.path);
    plain("update-index", "--force-remove", "absent.txt");
    plain("commit", "-q", "--no-gpg-sign", "-m", "all there");
    await hostile.ran();
    const { notices } = await stage.make("one", { repository: hostile.path, includeUncommitted: true });
    await stage.edit("one", { "filtered.dat": "changed\n", "plain.txt": "changed\n", "x.cnv": "new\n" });
    await worktreeState(stage.ports("one"));
    await mergeWorktree(stage.ports("one"));
    await discardWorktree({ ...stage.ports("one"), force: true });
    expect(await hostile.ran()).toEqual([]);
    expect(notices.join("\n")).toMatch(
      /Not copied from the main tree[^\n]*filtered.dat[\s\S]*Git LFS[\s\S]*Submodules/,
    );
  });

  it("a worktree for an agent runs no program that a repository names for worktrees or branches", async () => {
    await using stage = await worktreeStage({ "x.late": "x\n", ".gitattributes": "*.late filter=late\n" });
    const canary = stage.temp.at("canary");
    await stage.temp.files({ late: `[filter "late"]\n\tsmudge = touch ${canary} && cat\n` });
    for (const condition of ["gitdir:**/worktrees/**", "onbranch:troupe/**"]) {
      stage.git(["config", `includeIf.${condition}.path`, stage.temp.at("late")]);
    }
    await stage.write({ ".git/hooks/post-checkout": `#!/bin/sh\ntouch ${canary}\n` });
    await chmod(join(stage.main, ".git/hooks/post-checkout"), 0o755);
    await stage.make("one");
    expect(existsSync(canary)).toBe(false);
    stage.git(["worktree", "add", "-q", "-b", "troupe/x", stage.temp.at("careless")]);
    expect(existsSync(canary)).toBe(true);
  });
});

describe("discarding a worktree", () => {
  it("discarding a worktree leaves no trace, and is refused for unmerged work unless forced", async () => {
    await using stage = await worktreeStage();
    const before = fingerprint(stage.main);
    await stage.make("idle");
    expect(await discardWorktree(stage.ports("idle"))).toEqual({ kind: "discarded" });
    await stage.make("busy");
    await stage.edit("busy", { "new.txt": "work\n" });
    expect(await discardWorktree(stage.ports("busy"))).toEqual({
      kind: "refused",
      work: { ahead: 0, files: ["new.txt"] },
    });
    stage.git(["add", "."], join(stage.folder, "busy"));
    stage.git(["commit", "-q", "-m", "work"], join(stage.folder, "busy"));
    expect(await discardWorktree(stage.ports("busy"))).toMatchObject({ kind: "refused", work: { ahead: 1 } });
    expect(await discardWorktree({ ...stage.ports("busy"), force: true })).toEqual({ kind: "discarded" });
    expect(stage.git(["worktree", "list"]).trim().split("\n")).toHaveLength(1);
    expect(stage.git(["branch", "--list", "troupe/*"])).toBe("");
    expect(existsSync(join(stage.folder, "busy"))).toBe(false);
    expect(fingerprint(stage.main)).toEqual(before);
    await expect(discardWorktree(stage.ports("busy"))).rejects.toThrow("Task busy has no worktree.");
  });

  it("discarding worktrees finds leftovers of a crash, and replaces an unfinished worktree", async () => {
    await using stage = await worktreeStage();
    await stage.make("whole");
    await stage.make("gone");
    await stage.make("kept");
    stage.git(["commit", "-q", "--allow-empty", "-m", "work"], join(stage.folder, "kept"));
    rmSync(join(stage.folder, "gone"), { recursive: true });
    rmSync(join(stage.folder, "kept"), { recursive: true });
    stage.git(["worktree", "add", "-q", "-b", "other", join(stage.folder, "stray")]);
    for (const at of [3, 9]) {
      const plan = { at, fault: { kind: "fail", code: "EIO", lasting: true } as const };
      await stage.make(`cut-${at}`, { disk: faultDisk(nodeDisk, plan) }).catch(() => undefined);
    }
    const states = Object.fromEntries(
      (await listWorktrees(stage)).map(({ root, state }) => [root.split("/").at(-1), state]),
    );
    expect(states).toMatchObject({ whole: "ready", gone: "gone", kept: "gone", stray: "stray", "cut-9": "unfinished" });
    await stage.make("cut-9");
    const made = (await listWorktrees(stage)).map(({ root, state }) => `${root.split("/").at(-1)} ${state}`);
    expect(made).toEqual(expect.arrayContaining(["cut-9 ready", "gone gone", "kept gone"]));
    await expect(stage.make("kept")).rejects.toThrow("no longer exists");
  });

  it("discarding a worktree does not delete a folder that existed before", async () => {
    await using stage = await worktreeStage();
    mkdirSync(join(stage.folder, "one"), { recursive: true });
    await expect(createWorktree({ repository: stage.main, sessionId: "s", ...stage.ports("one") })).rejects.toThrow(
      "already",
    );
    expect(existsSync(join(stage.folder, "one"))).toBe(true);
  });
});
