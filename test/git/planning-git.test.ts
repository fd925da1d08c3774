import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { neutralVariables } from "../../src/lib/node/git.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hostileRepository } from "./hostile-repository.ts";

describe("git in commands of an agent that plans", () => {
  it("git of a planning agent runs no program that a repository or submodule names, and shows changes", async () => {
    await using folder = await tempFolder();
    const repository = await hostileRepository(folder);
    // What a repository says about its submodules goes before a general setting.
    await writeFile(
      folder.at("repository/.gitmodules"),
      '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n',
    );
    const variables = await neutralVariables(repository.path);
    const shown: Record<string, string> = {};
    for (const args of [
      ...["status", "diff", "diff HEAD", "diff --stat", "log -p -3", "show HEAD", "blame plain.txt", "grep two"],
      ...["stash list", "branch -vv", "show HEAD:filtered.dat", "cat-file -p HEAD:absent.txt", "diff-files -p"],
    ]) {
      shown[args] = await repository.plain(args.split(" "), { variables });
      expect({ args, ran: await repository.ran() }).toEqual({ args, ran: [] });
    }
    expect(shown.status).toContain("filtered.dat");
    for (const command of ["diff", "diff HEAD"]) expect(shown[command]?.match(/^\+two$/gm)).toHaveLength(5);

    await repository.plain(["status"]);
    expect(await repository.ran()).toContain("fsmonitor");
  });

  it("git of a planning agent finds no repository when the repository's programs cannot be determined", async () => {
    await using folder = await tempFolder();
    const repository = await hostileRepository(folder);
    await writeFile(folder.at("repository/.git/config"), "[core\n");
    const variables = await neutralVariables(repository.path);
    expect(variables).toEqual({ GIT_DIR: "/dev/null" });
    expect(await repository.plain(["status"], { variables })).toBe("");
  });
});
