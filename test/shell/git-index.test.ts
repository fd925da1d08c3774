import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { indexNamesRepositories } from "../../src/tools/shell/git-index.ts";

const COMMIT = { sha1: "a".repeat(40), sha256: "b".repeat(64) };

describe.each(["sha1", "sha256"] as const)("the index of a repository with %s", (format) => {
  it.each(["2", "3", "4"])("names repositories only when it does, in version %s", async (version) => {
    await using folder = await tempFolder();
    const git = (...args: string[]) => execFileSync("git", args, { cwd: folder.path });
    const path = folder.at(".git/index");
    git("init", "-q", `--object-format=${format}`);
    for (let index = 0; index < 300; index++) {
      mkdirSync(folder.at(`d${index % 9}`), { recursive: true });
      writeFileSync(folder.at(`d${index % 9}/${"name".repeat(index % 30)}${index}`), String(index));
    }
    git("add", ".");
    git("update-index", "--index-version", version);
    if (version === "3") git("update-index", "--skip-worktree", "d0/0");
    git("write-tree"); // brings an extension
    expect(indexNamesRepositories(path)).toBe(false);
    git("update-index", "--add", "--cacheinfo", `160000,${COMMIT[format]},d5/sub`);
    expect(indexNamesRepositories(path)).toBe(true);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 30));
    expect(indexNamesRepositories(path), "cut off").toBe(true);
  });
});
