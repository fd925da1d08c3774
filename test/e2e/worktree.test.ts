/** What becomes of the work that an agent did in a worktree of its own: through the built program. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

/** A repository, and a session in it whose agent has written a file and changed one, out of sight. */
async function written(folder: string) {
  const [cwd, home] = [join(folder, "project"), join(folder, "home")];
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.com", ...args], { cwd, encoding: "utf8" });
  execFileSync("git", ["init", "-q", "-b", "main", cwd]);
  writeFileSync(join(cwd, "a.txt"), "one\n");
  git("add", ".");
  git("commit", "-qm", "first");
  const work = { description: "write", prompt: "write", agent_type: "general-purpose", name: "writer" };
  const model = script(folder, [
    { calls: [{ name: "task", arguments: { ...work, isolation: "worktree" } }] },
    { say: "It is written." },
    {
      agent: "general-purpose",
      calls: [
        { name: "create", arguments: { path: "b.txt", file_text: "new\n" } },
        { name: "edit", arguments: { path: "a.txt", old_str: "one", new_str: "two" } },
      ],
    },
    { agent: "general-purpose", say: "done" },
  ]);
  const ran = await troupe(["-p", "go", "--model", model, "--allow-all"], { cwd, home });
  const tasks = (...args: string[]) => troupe(["tasks", ...args], { cwd, home });
  return { cwd, home, git, ran, tasks, read: (name: string) => readFileSync(join(cwd, name), "utf8") };
}

describe("troupe tasks diff, merge and discard", () => {
  it("troupe tasks diff and merge show and merge an agent's work, and discard only loses nothing", async () => {
    await using folder = await tempFolder();
    const { cwd, git, ran, tasks, read } = await written(folder.path);
    expect(ran).toMatchObject({ code: 0, stdout: "It is written.\n" });
    expect(ran.stderr).toMatch(
      /the work of writer is in a worktree and not merged: troupe tasks diff writer --session [0-9a-f]{8} ·/,
    );
    expect(ran.stderr).toContain("2 files +2 −1 (writer: a.txt, writer: b.txt) · troupe diff · troupe undo\n");
    expect([git("status", "--short"), read("a.txt"), existsSync(join(cwd, "b.txt"))]).toEqual(["", "one\n", false]);

    const diff = await tasks("diff", "writer");
    expect(diff).toMatchObject({ code: 0, stderr: "" });
    expect(diff.stdout).toMatch(/2 uncommitted files, 2 files to merge/);
    expect(diff.stdout).toContain("\n-one\n+two\n");

    const kept = await tasks("discard", "writer");
    expect(kept).toMatchObject({ code: 1, stdout: "Not merged yet:\n  a.txt\n  b.txt\n" });
    expect(kept.stderr).toContain("Nothing was discarded: 0 commits and 2 changed files would be lost.");

    writeFileSync(join(cwd, "a.txt"), "mine\n");
    const refused = await tasks("merge", "writer");
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain("Nothing was merged: 1 file changed on both sides.");
    const [, here = "", there = ""] = /here: (\S+)\n\s+task: (\S+)\n/.exec(refused.stdout) ?? [];
    expect([readFileSync(here, "utf8"), readFileSync(there, "utf8")]).toEqual(["mine\n", "two\n"]);
    expect([read("a.txt"), existsSync(join(cwd, "b.txt"))]).toEqual(["mine\n", false]);

    writeFileSync(join(cwd, "a.txt"), "one\n");
    const merged = await tasks("merge", "writer", "--as", "squash");
    expect(merged).toMatchObject({ code: 0, stderr: "" });
    expect(merged.stdout).toMatch(/^Merged 2 files, in commit [0-9a-f]{10}:\n {2}a\.txt\n {2}b\.txt\n$/);
    expect([read("a.txt"), read("b.txt"), git("status", "--short")]).toEqual(["two\n", "new\n", ""]);
    expect(git("log", "--format=%s").split("\n")).toHaveLength(3);

    expect(await tasks("merge", "writer")).toMatchObject({
      code: 0,
      stdout: "There is nothing to merge from writer.\n",
    });
    expect(await tasks("discard", "writer")).toMatchObject({
      code: 0,
      stdout: "Discarded the worktree of writer and its branch.\n",
    });
    expect(git("worktree", "list").trim().split("\n")).toHaveLength(1);
    expect(git("branch", "--format=%(refname:short)").trim()).toBe("main");
    const gone = await tasks("diff", "writer");
    expect(gone).toMatchObject({ code: 2, stderr: expect.stringContaining("writer") });
    expect((await tasks("show", "writer")).stdout).toContain("done");
  });

  it("troupe tasks discard works with --force, and fails for an agent without a worktree", async () => {
    await using folder = await tempFolder();
    const { git, tasks, read } = await written(folder.path);
    expect(await tasks("discard", "writer", "--force")).toMatchObject({ code: 0 });
    expect([read("a.txt"), git("branch", "--format=%(refname:short)").trim()]).toEqual(["one\n", "main"]);
    expect(await tasks("diff", "nobody")).toMatchObject({ code: 2, stdout: "" });
  });

  it("troupe tasks merge does not merge protected names unless the user forces it", async () => {
    await using folder = await tempFolder();
    const { cwd, tasks, home, git } = await written(folder.path);
    const tree = join(git("worktree", "list", "--porcelain").split("worktree ").at(-1)?.split("\n")[0] ?? "");
    const id = execFileSync("git", ["hash-object", "-w", "--stdin"], {
      cwd: tree,
      input: "{}",
      encoding: "utf8",
    }).trim();
    for (const path of [".mcp.json", "sub/.vscode/tasks.json"])
      execFileSync("git", ["update-index", "--add", "--cacheinfo", `100644,${id},${path}`], { cwd: tree });
    const author = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
    execFileSync("git", [...author, "commit", "-qm", "work"], { cwd: tree });
    execFileSync("git", ["checkout", "-q", "--", "."], { cwd: tree });

    for (const as of ["files", "squash", "merge"]) {
      const refused = await tasks("merge", "writer", "--as", as);
      expect(refused).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("  .mcp.json\n  sub/.vscode/tasks.json\n"),
      });
      expect(refused.stderr).toContain("Nothing was merged: 2 protected names changed.");
    }
    const environment = { TROUPE_SHELL: "mark" };
    expect(await troupe(["tasks", "merge", "writer", "--force"], { cwd, home, environment })).toMatchObject({
      code: 1,
    });
    expect(existsSync(join(cwd, ".mcp.json"))).toBe(false);
    expect(await tasks("merge", "writer", "--force")).toMatchObject({ code: 0 });
    expect(existsSync(join(cwd, "sub/.vscode/tasks.json"))).toBe(true);
  });
});
