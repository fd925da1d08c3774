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

  it.each(["2", "4"])(
    "is read exactly with a true table of entries, and not with a forged one, in version %s",
    async (version) => {
      await using folder = await tempFolder();
      const git = (...args: string[]) => execFileSync("git", args, { cwd: folder.path });
      const path = folder.at(".git/index");
      git("init", "-q", `--object-format=${format}`);
      git("config", "index.threads", "4");
      git("config", "index.version", version);
      for (let index = 0; index < 200; index++) writeFileSync(folder.at(`file-${index}`), "x");
      git("add", ".");
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
