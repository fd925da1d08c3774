import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { checkOut } from "../../src/runtime/cluster/checkout.ts";
import type { WorkRow } from "../../src/runtime/cluster/work.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

it("a worker checks out one repository for several new sessions at the same time", async () => {
  await using folder = await tempFolder({ "shop/a.txt": "one\n" });
  const repository = folder.at("shop");
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", repository, "-c", "user.name=a", "-c", "user.email=a@b.c", ...args]);
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "Add a file");
  const options = { folder: folder.at("work"), disk: nodeDisk, localFolders: [folder.path] };
  const works = ["s1", "s2", "s3", "s4"].map((sessionId) => ({ sessionId, request: { repository } }) as WorkRow);
  const made = await Promise.all(works.map((work) => checkOut(work, undefined, options)));
  for (const { workTree } of made) expect(readdirSync(workTree).sort()).toEqual([".git", "a.txt"]);
  expect(readdirSync(join(options.folder, "repositories"))).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/)]);
});
