import { renameSync, rmSync, symlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { ExistingNames } from "../../src/tools/shell/sandbox/existing-names.ts";

describe("existing names", () => {
  it("existing protected names are found at every depth, through links, and again after each change", async () => {
    await using folder = await tempFolder({ "a/b/c": "x", "real/z": "x" });
    const names = new ExistingNames(["a/b/c", "a/d", "top", "linked/z", "linked/y"]);
    const found = (): string[] => names.in(folder.path).map((path) => path.slice(folder.path.length + 1));
    expect(found()).toEqual(["a/b/c"]);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(found()).toEqual(["a/b/c"]);
    await folder.files({ "a/d": "x", TOP: "x" });
    symlinkSync("real", folder.at("linked"));
    expect(found()).toEqual(["a/b/c", "a/d", "top", "linked/z"]);
    await new Promise((resolve) => setTimeout(resolve, 60));
    found();
    rmSync(folder.at("a/d"));
    renameSync(folder.at("real/z"), folder.at("real/y"));
    expect(found()).toEqual(["a/b/c", "top", "linked/y"]);
  });
});
