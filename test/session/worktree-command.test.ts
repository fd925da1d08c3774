import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { diffTask, discardTask, mergeTask } from "../../src/cli/commands/worktree.ts";
import { worktreeStage } from "./worktree-stage.ts";

describe("troupe tasks merge, diff, discard", () => {
  it("troupe tasks diff, merge and discard show the work, merge it, and discard it only with --force", async () => {
    await using stage = await worktreeStage({ "a.txt": "one\n" });
    const { root, branch } = await stage.make("one");
    let printed = "";
    const print = (text: string): void => {
      printed += text;
    };
    const wish = { ...stage.ports("one"), print };
    await stage.edit("one", { "a.txt": "task\n" });
    expect(await diffTask(wish)).toBe(0);
    expect(printed).toContain(`${branch} at ${root}\n0 commits, 1 uncommitted file, 1 file to merge\n`);
    expect(printed).toContain("\n-one\n+task\n");

    printed = "";
    await expect(discardTask(wish)).rejects.toThrow(
      "Nothing was discarded: 0 commits and 1 changed file would be lost.",
    );
    await stage.write({ "a.txt": "main\n" });
    await expect(mergeTask(wish)).rejects.toThrow("Nothing was merged: 1 file changed on both sides.");
    const versions = join(stage.folder, ".state/one/conflicts/1");
    expect(printed).toBe(
      `Not merged yet:\n  a.txt\nChanged on both sides:\n  a.txt\n    here: ${versions}/main/a.txt\n    task: ${versions}/task/a.txt\n`,
    );

    printed = "";
    rmSync(join(stage.main, "a.txt"));
    stage.git(["checkout", "-q", "a.txt"]);
    expect(await mergeTask(wish)).toBe(0);
    expect(await mergeTask(wish)).toBe(0);
    expect(await discardTask(wish)).toBe(0);
    expect(printed).toBe(
      "Merged 1 file, not committed, for you to look at:\n  a.txt\n" +
        "There is nothing to merge from one.\nDiscarded the worktree of one and its branch.\n",
    );
  });

  it("troupe tasks merge lists protected names, asks where allowed, and merges them all with --force", async () => {
    await using stage = await worktreeStage({ "a.txt": "one\n" });
    await stage.make("one");
    let printed = "";
    const asked: string[] = [];
    const wish = {
      ...stage.ports("one"),
      print: (text: string): void => {
        printed += text;
      },
      ask: async (question: string) => asked.push(question) > 0,
    };
    await stage.edit("one", { ".gitattributes": "* text\n" });
    expect(await mergeTask(wish)).toBe(0);
    expect(asked).toEqual(["Merge them? [y/N] "]);

    await stage.edit("one", { ".mcp.json": "{}\n", ".gitattributes": "* -text\n" });
    await expect(mergeTask(wish)).rejects.toThrow("Nothing was merged: 2 protected names changed.");
    expect(printed).toContain("decide what others run:\n  .gitattributes\n  .mcp.json\n");
    expect(asked).toHaveLength(1);
    expect(existsSync(join(stage.main, ".mcp.json"))).toBe(false);

    await diffTask(wish);
    expect(printed).toContain("Protected names, merged only with --force: .gitattributes, .mcp.json\n");
    expect(await mergeTask({ ...wish, force: true })).toBe(0);
    expect(existsSync(join(stage.main, ".mcp.json"))).toBe(true);
  });
});
