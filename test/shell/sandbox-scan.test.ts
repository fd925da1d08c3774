import { chmodSync, renameSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { TooLarge, WorkspaceScanner } from "../../src/tools/shell/sandbox/sandbox-scan.ts";

describe("the search of a workspace", () => {
  it("the search of a workspace finds names below the top and leaves packages out", async () => {
    await using folder = await tempFolder({
      ".vscode/a": "",
      ".env": "",
      "dist/.env": "",
      "sub/.vscode/a": "",
      "sub/repo/.git/HEAD": "",
      "sub/x/.env.local": "",
      "sub/x/.env.example": "",
      "bare/HEAD": "",
      "bare/objects/x": "",
      "bare/refs/x": "",
      "node_modules/x/.env": "",
    });
    const found = await new WorkspaceScanner().scan(folder.path);
    expect({ ...found, environmentFiles: [...found.environmentFiles].sort() }).toEqual({
      environmentFiles: [folder.at(".env"), folder.at("dist/.env"), folder.at("sub/x/.env.local")],
      environmentTargets: [],
      gitFolders: [folder.at("bare"), folder.at("sub/repo/.git")],
      gitLinks: [],
      linkedGit: [],
      oddLinks: [],
      protectedNames: [folder.at("sub/.vscode")],
      unreadable: [],
      unnameable: [],
    });
  });

  it("the search of a workspace finds the files that links named .env lead to, but no system files", async () => {
    await using folder = await tempFolder({ "a/x": "" });
    await using elsewhere = await tempFolder({ "shared/values": "" });
    symlinkSync(elsewhere.at("shared/values"), folder.at("a/.env"));
    symlinkSync("/etc/hostname", folder.at(".env"));
    const { environmentFiles } = await new WorkspaceScanner().scan(folder.path);
    expect(environmentFiles).toEqual([elsewhere.at("shared/values")]);
  });

  it("the search of a workspace finds an entry that appears later, even when the times of its folder are set back", async () => {
    await using folder = await tempFolder({ "a/b/c/file": "", "elsewhere/.env": "" });
    const scanner = new WorkspaceScanner();
    const paths = async (): Promise<readonly string[]> => (await scanner.scan(folder.path)).environmentFiles;
    expect(await paths()).toEqual([folder.at("elsewhere/.env")]);
    writeFileSync(folder.at("a/b/c/.env"), "");
    utimesSync(folder.at("a/b/c"), 1, 1);
    expect(await paths()).toEqual([folder.at("elsewhere/.env"), folder.at("a/b/c/.env")]);
    renameSync(folder.at("elsewhere"), folder.at("a/moved"));
    symlinkSync("c/.env", folder.at("a/b/.env.link"));
    expect(await paths()).toEqual([folder.at("a/moved/.env"), folder.at("a/b/c/.env")]);
  });

  it("the search of a workspace does not depend on time: a search that other work interrupts is complete", async () => {
    const files = Object.fromEntries(
      Array.from({ length: 3000 }, (_, index) => [`f${index % 300}/s${index}/file`, ""]),
    );
    await using folder = await tempFolder({ ...files, "f299/s299/deep/.env": "" });
    const busy = setInterval(() => {
      for (const end = performance.now() + 20; performance.now() < end; );
    }, 1);
    const found = await new WorkspaceScanner().scan(folder.path);
    clearInterval(busy);
    expect(found.environmentFiles).toEqual([folder.at("f299/s299/deep/.env")]);
  });

  it.skipIf(process.getuid?.() === 0)("the search of a workspace reports a folder that cannot be listed", async () => {
    await using folder = await tempFolder({ "closed/.env": "" });
    chmodSync(folder.at("closed"), 0);
    const found = await new WorkspaceScanner().scan(folder.path);
    chmodSync(folder.at("closed"), 0o755);
    expect(found.unreadable).toEqual([folder.at("closed")]);
  });

  it("the search of a workspace throws when there are too many folders", async () => {
    await using folder = await tempFolder({ "a/x": "", "b/x": "", "c/x": "" });
    await expect(new WorkspaceScanner().scan(folder.path, { maxFolders: 2 })).rejects.toThrow(TooLarge);
  });
});
