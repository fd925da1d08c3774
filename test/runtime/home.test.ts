import { chmodSync, statSync } from "node:fs";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { protectStateRoot } from "../../src/runtime/home.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe("the folder with the state", () => {
  it.each([0o777, 0o750, 0o701, 0o720])(
    "the state folder is made private when others have access to it (%o), and the user is notified",
    async (mode) => {
      await using folder = await tempFolder({ ".troupe/settings.json": "{}" });
      chmodSync(folder.at(".troupe"), mode);
      await symlink(folder.at(".troupe"), folder.at("link"));
      const environment = { HOME: folder.path };
      expect(protectStateRoot(folder.at("link"), environment)).toMatch(
        /link was open to other users .* is private now\.$/,
      );
      expect(modeOf(folder.at(".troupe"))).toBe(0o700);
      expect(protectStateRoot(folder.at(".troupe"), environment)).toBeUndefined();
      expect(protectStateRoot(folder.at("missing"), environment)).toBeUndefined();
    },
  );

  it("the state folder is not changed when it is the home folder or shared by design", async () => {
    await using folder = await tempFolder();
    await mkdir(folder.at("home"));
    await mkdir(folder.at("shared"));
    await chmod(folder.at("home"), 0o755);
    await chmod(folder.at("shared"), 0o1777);
    const environment = { HOME: folder.at("home") };
    expect(protectStateRoot(folder.at("home"), environment)).toBeUndefined();
    expect(protectStateRoot(folder.at("shared"), environment)).toContain("Set TROUPE_HOME to a folder of your own.");
    expect([modeOf(folder.at("home")), modeOf(folder.at("shared"))]).toEqual([0o755, 0o1777]);
  });
});
