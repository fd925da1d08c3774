import { execFileSync } from "node:child_process";
import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../testing/temp-folder.ts";
import { survey } from "./survey.ts";

it.runIf(process.platform !== "win32")(
  "the survey of a repository reads no file that is a link, wherever it leads",
  async () => {
    await using folder = await tempFolder({
      "outside.txt": "A secret of the user.\n",
      "repo/.env": "A secret of the project.\n",
      "repo/.gitignore": ".env\n",
      "repo/pumps/motor.ts": "export const motor = 1;\n",
    });
    const root = join(realpathSync(folder.path), "repo");
    mkdirSync(join(root, "valves"));
    for (const [path, target] of [
      ["README.md", "../outside.txt"],
      ["readme.txt", ".env"],
      ["package.json", "/dev/zero"],
      ["pumps/README.md", "../../outside.txt"],
      ["pumps/pumps.ts", "/dev/zero"],
      ["valves/README.md", "../.env"],
    ] as const)
      symlinkSync(target, join(root, path));
    execFileSync("git", ["init", "--quiet"], { cwd: root });
    const found = await survey(root);
    expect(found.files).toContain("README.md");
    expect(found.description).toBeUndefined();
    expect(JSON.stringify(found)).not.toContain("secret");
  },
);

it("the survey describes a repository by its own README", async () => {
  await using folder = await tempFolder({ "README.md": "# Garden\n\nWaters plants.\n" });
  expect(await survey(realpathSync(folder.path))).toMatchObject({ description: "Waters plants." });
});
