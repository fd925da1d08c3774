import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { scanWorkspace } from "../../src/tools/shell/sandbox-scan.ts";

const limits = { entries: 1000, milliseconds: 5000, found: 100 };

describe("the look through a workspace", () => {
  it("finds names below, passes over packages and leaves generated folders for last", async () => {
    await using folder = await tempFolder({
      ".vscode/a": "",
      "dist/.env": "",
      "sub/.vscode/a": "",
      "sub/repo/.git/HEAD": "",
      "sub/x/.env.local": "",
      "node_modules/x/.env": "",
    });
    expect(scanWorkspace(folder.path, "/none", limits)).toEqual({
      environmentFiles: [folder.at("sub/x/.env.local"), folder.at("dist/.env")],
      repositories: [folder.at("sub/repo")],
      protectedNames: [folder.at("sub/.vscode")],
      complete: true,
    });
  });

  it.each([
    { ...limits, entries: 5 },
    { ...limits, found: 2 },
    { ...limits, milliseconds: -1 },
  ])("has an end, and says so: %j", async (bounds) => {
    const names = Array.from({ length: 10 }, (_, index) => [`f${index}/.env`, ""]);
    await using folder = await tempFolder(Object.fromEntries(names));
    const found = scanWorkspace(folder.path, "/none", bounds);
    expect(found.complete).toBe(false);
    expect(found.environmentFiles.length).toBeLessThan(10);
  });
});
