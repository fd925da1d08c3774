/** Work of an agent never brings names that run code later, however the agent got them into its commits. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type MergeKind, mergeWorktree } from "../../src/worktrees/worktree-merge.ts";
import { MISSING } from "../../src/worktrees/worktree-plan.ts";
import { refuseMalformed } from "../../src/worktrees/worktree-protection.ts";
import { fingerprint, type WorktreeStage, worktreeStage } from "./worktree-stage.ts";

const KINDS: readonly MergeKind[] = ["files", "squash", "merge"];
/** The short version tries every kind of merge with the full list of names, and one kind with everything else, all links in one merge. */
const USUAL_KINDS: readonly MergeKind[] = process.env.TROUPE_SLOW === undefined ? ["squash"] : KINDS;
const BLOB = "100644";
const LINK = "120000";

interface Planted {
  readonly path: string;
  readonly mode?: string;
  readonly content?: string;
}

const input = (root: string, args: readonly string[], text: string): string =>
  execFileSync("git", args, { cwd: root, input: text, encoding: "utf8" }).trim();

/** Commits entries that are never in the files of the worktree, as an agent can with git's plumbing. */
async function plant(stage: WorktreeStage, taskId: string, entries: readonly Planted[]): Promise<string> {
  const { root } = await stage.make(taskId);
  const ids = new Map<string, string>();
  const lines = entries.map(({ path, mode = BLOB, content = "evil\n" }) => {
    const id = ids.get(content) ?? input(root, ["hash-object", "-w", "--stdin"], content);
    ids.set(content, id);
    return `${mode} ${id}\t${path}\0`;
  });
  input(root, ["update-index", "-z", "--add", "--index-info"], lines.join(""));
  input(root, ["update-index", "-z", "--skip-worktree", "--stdin"], entries.map(({ path }) => `${path}\0`).join(""));
  stage.git(["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "-m", "work"], root);
  return root;
}

/** A commit whose root tree holds what `git add` would refuse. */
async function plantTree(stage: WorktreeStage, taskId: string, lines: (root: string) => string): Promise<void> {
  const { root, branch } = await stage.make(taskId);
  const tree = input(root, ["mktree"], `${stage.git(["ls-tree", "HEAD"], root)}${lines(root)}`);
  const args = ["-c", "user.name=A", "-c", "user.email=a@b.c", "commit-tree", tree, "-p", "HEAD", "-m", "work"];
  stage.git(["update-ref", `refs/heads/${branch}`, stage.git(args, root).trim()], root);
  try {
    stage.git(["read-tree", "HEAD"], root);
  } catch {
    return; // this git refuses to read such a tree
  }
  // In the files it must not look as if it had been deleted.
  input(root, ["update-index", "-z", "--skip-worktree", "--stdin"], stage.git(["ls-files", "-d", "-z"], root));
}

async function expectRefused(
  stage: WorktreeStage,
  taskId: string,
  paths: readonly string[],
  kinds = USUAL_KINDS,
): Promise<void> {
  const before = fingerprint(stage.main);
  for (const as of kinds) {
    const result = await mergeWorktree({ ...stage.ports(taskId), as });
    expect(result).toMatchObject({ kind: "protected" });
    expect(result.kind === "protected" && result.changes.map(({ path }) => path)).toEqual(paths);
    expect(fingerprint(stage.main)).toEqual(before);
  }
}

describe("merging a worktree with protected names", () => {
  const NAMES = [
    ...[".claude/settings.json", ".envrc", ".github/hooks/x.json", ".gitmodules", ".mcp.json", ".troupe/settings.json"],
    ...[".vscode/tasks.json", ".VSCODE/tasks.json", ".idea/workspace.xml", ".github/extensions/x/extension.mjs"],
    ...["sub/.vscode/tasks.json", "sub/.mcp.json", "deep/er/.GitHub/Hooks/x.json", ".v\u017fcode/tasks.json"],
    ...[".g\u200cit/config", ".gi\u200dt/hooks/pre-commit", "sub/.claude/hooks/x.sh", ".bashrc"],
  ];

  it("merging a worktree with protected names is refused for every kind of merge, and names them all", async () => {
    await using stage = await worktreeStage();
    await plant(
      stage,
      "names",
      [...NAMES, "fine.txt"].map((path) => ({ path })),
    );
    const sorted = [...NAMES].sort((one, two) => Buffer.compare(Buffer.from(one), Buffer.from(two)));
    await expectRefused(stage, "names", sorted, KINDS);
  });

  const LINKS = [".GITHUB", ".config", ".github", ".ssh", ".vscode", "sub/.claude"];

  it.each(process.env.TROUPE_SLOW === undefined ? [LINKS] : LINKS.map((path) => [path]))(
    "merging a worktree with protected names is refused for a link called %s",
    async (...paths) => {
      await using stage = await worktreeStage();
      await plant(
        stage,
        "links",
        paths.map((path) => ({ path, mode: LINK, content: "conf" })),
      );
      await expectRefused(stage, "links", paths);
    },
    30_000,
  );

  it.each([".git", "sub/../.git/hooks", "../my project/.vscode", "./.troupe", "inner"])(
    "merging a worktree with protected names is refused for a link to %s",
    async (target) => {
      await using stage = await worktreeStage();
      stage.git(["config", "core.x", "y"]);
      // An entry that git ignores leads to .git already; a second link reaches it through that one.
      if (target === "inner") {
        execFileSync("ln", ["-s", ".git", join(stage.main, "inner")]);
        await stage.temp.files({ "my project/.git/info/exclude": "inner\n" });
      }
      await plant(stage, "target", [{ path: "x", mode: LINK, content: target }]);
      await expectRefused(stage, "target", ["x"]);
    },
    30_000,
  );

  it("merging protected names is refused for a gitlink, for a deletion and for a change of the mode", async () => {
    await using stage = await worktreeStage({ "a.txt": "a\n", ".vscode/run.sh": "x\n", ".vscode/tasks.json": "{}\n" });
    const { root } = await stage.make("gone");
    rmSync(join(root, ".vscode/tasks.json"));
    await expectRefused(stage, "gone", [".vscode/tasks.json"]);
    const other = await stage.make("mode");
    chmodSync(join(other.root, ".vscode/run.sh"), 0o755);
    await expectRefused(stage, "mode", [".vscode/run.sh"]);
    const { root: third } = await stage.make("module");
    const commit = stage.git(["rev-parse", "HEAD"], third).trim();
    stage.git(["update-index", "--add", "--cacheinfo", `160000,${commit},.github`], third);
    stage.git(["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "-m", "work"], third);
    await expectRefused(stage, "module", [".github"]);
  });

  it("merging a worktree with protected names is refused when a protected link leads to a folder of the repository", async () => {
    await using stage = await worktreeStage({ "conf/tasks.json": "{}\n" });
    execFileSync("ln", ["-s", "conf", join(stage.main, ".vscode")]);
    await plant(stage, "behind", [{ path: "conf/tasks.json" }]);
    await expectRefused(stage, "behind", ["conf/tasks.json"]);
  });

  it.each([".git", ".GIT"])(
    "merging a worktree with protected names is refused for a tree that contains %s itself",
    async (name) => {
      await using stage = await worktreeStage();
      await plantTree(stage, "tree", (root) => {
        const blob = input(root, ["hash-object", "-w", "--stdin"], "evil");
        return `040000 tree ${input(root, ["mktree"], `${BLOB} blob ${blob}\tconfig\n`)}\t${name}\n`;
      });
      const before = fingerprint(stage.main);
      const refused = await mergeWorktree(stage.ports("tree")).catch((error: Error) => ({ kind: error.message }));
      expect(refused.kind).not.toBe("merged");
      expect(fingerprint(stage.main)).toEqual(before);
    },
  );

  it("merging a worktree with protected names is refused for a tree that leads out of the worktree", async () => {
    await using stage = await worktreeStage();
    await plantTree(stage, "out", (root) => {
      const blob = input(root, ["hash-object", "-w", "--stdin"], "evil");
      return `040000 tree ${input(root, ["mktree"], `${BLOB} blob ${blob}\tout.txt\n`)}\t..\n`;
    });
    await expect(mergeWorktree(stage.ports("out"))).rejects.toThrow();
    expect(existsSync(stage.temp.at("out.txt"))).toBe(false);
  });

  it.each([["../out"], ["a//b"], ["./a"], ["x", "x/secret"], ["X", "x/hooks/pre-commit"]])(
    "merging a worktree with protected names is refused for trees with paths that git would not write: %s",
    (...paths) => {
      const version = { mode: BLOB, id: "1" };
      const changes = paths.map((path) => ({ path, before: { mode: MISSING, id: "0" }, after: version }));
      expect(() => refuseMalformed(changes)).toThrow("is not a path that git would write");
      expect(() => refuseMalformed([{ path: "x/y", before: version, after: version }])).not.toThrow();
    },
  );

  it("merging a worktree asks once about names that need consent, and merges exactly what was shown", async () => {
    await using stage = await worktreeStage();
    await plant(stage, "ask", [
      { path: ".github/workflows/ci.yml" },
      { path: "sub/.gitattributes" },
      { path: "b.txt" },
    ]);
    await expectRefused(stage, "ask", [".github/workflows/ci.yml", "sub/.gitattributes"]);
    const shown: unknown[] = [];
    const permit = async (changes: unknown): Promise<boolean> => shown.push(changes) > 0;
    const result = await mergeWorktree({ ...stage.ports("ask"), permit });
    expect(result).toMatchObject({
      kind: "merged",
      files: [".github/workflows/ci.yml", "b.txt", "sub/.gitattributes"],
    });
    expect(shown).toEqual([
      [
        { path: ".github/workflows/ci.yml", protection: "ask" },
        { path: "sub/.gitattributes", protection: "ask" },
      ],
    ]);
  });
});
