import { mkdir, realpath, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { linkedPaths } from "../../src/permissions/linked-paths.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

describe("protected names behind links", () => {
  it("protected names behind links are followed to the end of their links, even of links to nothing", async () => {
    await using folder = await tempFolder({ "conf/kept": "", ".idea/x.xml": "" });
    await symlink("conf", folder.at(".vscode"));
    await symlink("later/mcp.json", folder.at(".mcp.json"));
    await symlink("ci", folder.at(".github"));
    await mkdir(folder.at("ci"));
    const root = await realpath(folder.path);
    const { linkTargets, gitFolders } = linkedPaths([folder.path, folder.path]);
    expect([...linkTargets].sort()).toEqual(
      [...["ci/copilot", "ci/extensions", "ci/hooks", "ci/mcp.json"], ...["conf", "later/mcp.json"]].map(
        (name) => `${root}/${name}`,
      ),
    );
    expect(gitFolders).toEqual([]);
  });

  it("protected names include the git folder of a linked worktree, and the one it shares", async () => {
    await using folder = await tempFolder({
      "main/.git/worktrees/tree/commondir": "../..\n",
      "tree/.git": "gitdir: ../main/.git/worktrees/tree\n",
      "tree/deep/file": "",
      "apart/.git": "gitdir: /no/such/folder\n",
    });
    const root = await realpath(folder.path);
    expect(linkedPaths([folder.at("tree/deep")]).gitFolders).toEqual([
      `${root}/main/.git/worktrees/tree`,
      `${root}/main/.git`,
    ]);
    expect(linkedPaths([folder.at("apart")]).gitFolders).toEqual(["/no/such/folder"]);
  });
});
