import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { repositoriesIn } from "../../src/tools/shell/git-index.ts";

const COMMIT = { sha1: "a".repeat(40), sha256: "b".repeat(64) };

/** Adds these paths to the index without files: git takes the entries from its input, all with the same content. */
function addEntries(root: string, paths: readonly string[]): void {
  const git = (input: string, ...args: string[]): string =>
    execFileSync("git", args, { cwd: root, input, encoding: "utf8" }).trim();
  const blob = git("x", "hash-object", "-w", "--stdin");
  git(paths.map((path) => `100644 ${blob}\t${path}\n`).join(""), "update-index", "--index-info");
}

describe.each(["sha1", "sha256"] as const)("the index of a repository with %s", (format) => {
  it.each(["2", "3", "4"])(
    "the index of a repository lists its nested repositories, in version %s",
    async (version) => {
      await using folder = await tempFolder();
      const git = (...args: string[]) => execFileSync("git", args, { cwd: folder.path });
      const path = folder.at(".git/index");
      git("init", "-q", `--object-format=${format}`);
      addEntries(
        folder.path,
        Array.from({ length: 300 }, (_, index) => `d${index % 9}/${"name".repeat(index % 30)}${index}`),
      );
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
    },
  );

  it.each(["2", "4"])(
    "the index of a repository is read exactly with a true table of entries, not a forged one, in version %s",
    async (version) => {
      await using folder = await tempFolder();
      const git = (...args: string[]) => execFileSync("git", args, { cwd: folder.path });
      const path = folder.at(".git/index");
      git("init", "-q", `--object-format=${format}`);
      git("config", "index.threads", "4");
      git("config", "index.version", version);
      addEntries(
        folder.path,
        Array.from({ length: 200 }, (_, index) => `file-${index}`),
      );
      const bytes = readFileSync(path);
      const table = bytes.indexOf("IEOT");
      const statement = bytes.indexOf("EOIE");
      expect([table, statement].every((at) => at > 0)).toBe(true);
      expect(repositoriesIn(path)).toEqual([]);
      git("update-index", "--add", "--cacheinfo", `160000,${COMMIT[format]},sub`);
      expect(repositoriesIn(path), "with a repository").toEqual(["sub"]);
      const forge = (at: number, value: number): readonly string[] | undefined => {
        const forged = Buffer.from(bytes);
        forged.writeUInt32BE(value, at);
        writeFileSync(path, forged);
        return repositoriesIn(path);
      };
      const second = table + 8 + 4 + 8;
      const start = bytes.readUInt32BE(second);
      expect(forge(second, start)).toEqual([]);
      expect(forge(second, start + 8), "another offset").toBeUndefined();
      expect(forge(second + 4, 1), "another number of entries").toBeUndefined();
      expect(forge(table + 8, 2), "another version").toBeUndefined();
      expect(forge(statement + 8, start), "another end of the entries").toBeUndefined();
    },
  );
});
