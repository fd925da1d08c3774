import { mkdir, readFile, symlink } from "node:fs/promises";
import { expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { forkFolder } from "../../src/store/fork-folder.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

it("a fork copies no file that a command replaced by a link out of its folder", async () => {
  await using folder = await tempFolder({ "secret.txt": "key", "all/old/events.jsonl": "log", "all/old/files/a": "a" });
  await mkdir(folder.at("all/old/files/real"));
  await symlink(folder.at("secret.txt"), folder.at("all/old/files/out"));
  await symlink("../events.jsonl", folder.at("all/old/files/log"));
  await symlink(folder.path, folder.at("all/old/files/swapped"));
  const paths = ["files/a", "files/out", "files/log", "files/swapped/secret.txt", "files/gone"];
  await forkFolder({
    disk: nodeDisk,
    folder: folder.at("all"),
    from: "old",
    fork: {
      sessionId: "new",
      events: { count: 0, changedTypes: new Set(), change: (event) => event, added: [] },
      summary: { sessionId: "new", startTime: "", modifiedTime: "", isRemote: false } as never,
      copies: paths.map((path) => ({ path, kind: "own" as const })),
    },
  });
  const copied = await Promise.all(paths.map((path) => readFile(folder.at(`all/new/${path}`), "utf8").catch(() => "")));
  expect(copied).toEqual(["a", "", "", "", ""]);
});
