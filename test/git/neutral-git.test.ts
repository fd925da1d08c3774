import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { type GitReply, gitPrograms, runGit } from "../../src/lib/node/git.ts";
import { gitArguments, gitCommands } from "../../src/lib/node/git-commands.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hostileRepository } from "./hostile-repository.ts";

/** Every command that is allowed, in the ways the runtime may ask, and some ways it should not. */
const questions: readonly (readonly string[])[] = [
  ["status", "--porcelain=v2", "--branch"],
  ["status"],
  ["diff"],
  ["diff", "--stat"],
  ["diff", "HEAD"],
  ["diff", "HEAD~1", "--", "."],
  ["diff-tree", "-p", "-r", "HEAD~1", "HEAD"],
  ["log", "-p", "-5"],
  ["log", "--format=%H %G? %s"],
  ["show", "HEAD"],
  ["show", "HEAD:absent.txt"],
  ["show", "HEAD:filtered.dat"],
  ["cat-file", "-p", "HEAD:absent.txt"],
  ["cat-file", "-e", "HEAD"],
  ["rev-parse", "--show-toplevel", "--git-dir"],
  ["rev-list", "--objects", "HEAD"],
  ["ls-files", "-m", "-o", "--exclude-standard"],
  ["ls-tree", "-r", "HEAD"],
  ["branch", "--show-current"],
  ["branch", "--list"],
  ["tag", "--list"],
  ["merge-base", "HEAD", "HEAD~1"],
  ["worktree", "list", "--porcelain"],
  ["for-each-ref", "--format=%(refname) %(signature)"],
  ["describe", "--always"],
  ["check-ignore", "plain.txt"],
  ["remote", "-v"],
  ["remote", "get-url", "far"],
  ["stash", "list"],
];

describe("J01: the runtime's own git", () => {
  it("J01: the runtime's own git runs no program that a repository names, and plain git runs them all", async () => {
    await using folder = await tempFolder();
    const repository = await hostileRepository(folder);

    expect(new Set(questions.map(([name]) => name))).toEqual(new Set(Object.keys(gitCommands)));
    const replies: Record<string, GitReply> = {};
    for (const args of questions) {
      replies[args.join(" ")] = await runGit(args, { cwd: repository.path });
      await runGit(args, { cwd: repository.bare });
      expect({ args, ran: await repository.ran() }).toEqual({ args, ran: [] });
    }
    expect(replies["status --porcelain=v2 --branch"]?.stdout).toMatch(/filtered\.dat/);
    expect(replies.diff?.stdout).toMatch(/\+two/);
    expect(replies["show HEAD"]?.code).not.toBeNull();
    expect(replies["log --format=%H %G? %s"]?.stdout).toMatch(/first/);
    expect(replies["branch --show-current"]?.stdout).toBe("main\n");

    const plain: readonly (readonly string[])[] = [
      ["status"],
      ["diff", "--", "plain.txt"],
      ["diff", "--", "filtered.dat", "processed.bin"],
      ["-c", "diff.external=", "diff", "--no-ext-diff", "--", "converted.cnv"],
      ["diff", "--", "drawn.drv"],
      ["log", "-3", "--", "inner"],
      ["show", "HEAD:absent.txt"],
      ["ls-remote", "ssh://example.invalid/x"],
      ["ls-remote", "git://example.invalid/x"],
      ["credential", "fill"],
      ["evil"],
    ];
    for (const args of plain) await repository.plain(args);
    await repository.plain(["status"], { cwd: repository.bare });
    // The pager is missing here: git starts it on a terminal only, which neither side of this test has.
    expect(await repository.ran()).toEqual(
      expect.arrayContaining([
        ...["alias", "bare-fsmonitor", "credential-helper", "diff-command", "diff-external", "filter-clean"],
        ...["filter-process", "fsmonitor", "gpg", "hook", "inner-fsmonitor", "proxy", "ssh", "textconv"],
        "upload-pack",
      ]),
    );
  });

  it("the runtime's own git reads nothing through a work tree outside of the repository", async () => {
    await using folder = await tempFolder({ "elsewhere/secret.txt": "old\n" });
    const repository = await hostileRepository(folder);
    await repository.plain(["config", "core.worktree", folder.at("elsewhere")]);
    const reply = await runGit(["diff"], { cwd: repository.path });
    expect(reply).toEqual({ code: 128, stdout: "", stderr: expect.stringContaining("core.worktree") });
  });

  it("the runtime's own git is never a program named git from the workspace or PATH", async () => {
    await using folder = await tempFolder();
    await mkdir(folder.at("bin"));
    await writeFile(folder.at("bin/git"), `#!/bin/sh\ntouch ${folder.at("ran")}\n`, { mode: 0o755 });
    const before = process.env.PATH;
    process.env.PATH = `${folder.at("bin")}:${before}`;
    try {
      const reply = await runGit(["rev-parse", "--show-toplevel"], { cwd: folder.path });
      expect(reply.stderr).toMatch(/not a git repository/);
    } finally {
      process.env.PATH = before;
    }
    expect(Object.keys(await folder.tree())).toEqual(["bin/git"]);
  });

  it("the runtime's git is searched for where package managers install it, and never in a relative folder", () => {
    const places = gitPrograms({ CONDA_PREFIX: "/home/me/conda", PATH: "/project/bin" }, "/home/me");
    expect(places).toEqual(
      expect.arrayContaining([
        ...["/usr/bin/git", "/opt/homebrew/bin/git", "/home/linuxbrew/.linuxbrew/bin/git", "/home/me/conda/bin/git"],
        "/home/me/.nix-profile/bin/git",
      ]),
    );
    expect(places).not.toContain("/project/bin/git");
    expect(gitPrograms({ CONDA_PREFIX: "env" }, "/home/me").every((place) => place.startsWith("/"))).toBe(true);
  });

  it("the runtime's own git is stopped with its children on a timeout, too much output, or an abort", async () => {
    await using folder = await tempFolder();
    const repository = await hostileRepository(folder);
    const args = ["log", "-p"];
    const cwd = repository.path;
    // Git reads the rules of a folder before it lists it, and a pipe that nobody writes to has no end.
    const pipe = folder.at("endless/.gitignore");
    execFileSync("git", ["init", "-q", folder.at("endless")]);
    execFileSync("mkfifo", [pipe]);
    const endless = ["ls-files", "-o", "--exclude-standard"];
    const late = await runGit(endless, { cwd: folder.at("endless"), timeoutMs: 50 });
    expect(late).toMatchObject({ code: null, stopped: "time" });
    const isRead = (): boolean => {
      try {
        closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
        return true;
      } catch {
        return false;
      }
    };
    await expect.poll(isRead).toBe(false);
    expect(await runGit(args, { cwd, signal: AbortSignal.abort() })).toMatchObject({ code: null, stopped: "abort" });
    const cut = await runGit(args, { cwd, maxBytes: 100 });
    expect(cut).toMatchObject({ code: null, stopped: "size" });
    expect(cut.stdout.length).toBeLessThanOrEqual(100);
  });
});

describe("the list of git commands allowed to the runtime", () => {
  it.each([
    [["commit", "-m", "x"]],
    [["constructor"]],
    [["branch", "new"]],
    [["branch", "--list", "-D", "main"]],
    [["tag", "v1"]],
    [["worktree", "add", "x"]],
    [["diff", "--output=x"]],
    [["diff", "--outp=x"]],
    [["diff", "--ext-diff"]],
    [["log", "--textc"]],
    [["cat-file", "--filters", "HEAD:a"]],
    [["diff", "--no-index", "a", "b"]],
    [["status", "-vv"]],
    [["ls-files", "--recurse-submodules"]],
    [["log", "--show-sig"]],
    [["show", "a\0b"]],
  ])("the list of git commands allowed to the runtime does not contain %j", async (args) => {
    expect(gitArguments(args)).toMatchObject({ ok: false });
    await expect(runGit(args, { cwd: "." })).rejects.toThrow();
  });
});
