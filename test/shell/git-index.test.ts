import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { repositoriesIn } from "../../src/tools/shell/git-index.ts";

const COMMIT = { sha1: "a".repeat(40), sha256: "b".repeat(64) };

describe.each(["sha1", "sha256"] as const)("the index of a repository with %s", (format) => {
  it.each(["2", "3", "4"])("lists the repositories it names, in version %s", async (version) => {
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
    expect(repositoriesIn(path)).toEqual([]);
    const long = `d5/${"long/".repeat(1000)}sub`;
    for (const name of ["d5/sub", "d5/subway", "e/\u00fc", long])
      git("update-index", "--add", "--cacheinfo", `160000,${COMMIT[format]},${name}`);
    expect(repositoriesIn(path)).toEqual([long, "d5/sub", "d5/subway", "e/\u00fc"]);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 30));
    expect(repositoriesIn(path), "cut off").toBeUndefined();
    const forged = Buffer.from(bytes);
    const flags = forged.indexOf("d5/sub\0") - 2;
    if (version !== "4") {
      forged[flags + 1] = 2;
      writeFileSync(path, forged);
      expect(repositoriesIn(path), "forged length").toBeUndefined();
    }
  });
});
