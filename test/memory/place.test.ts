import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { originUrlIn, repositorySpaces } from "../../src/context/memory/space.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { accepted, localAt, putFile, putRepository, toldAt } from "./support.ts";

const keys = (folder: string, isTrusted = false): string[] =>
  repositorySpaces(folder, { isTrusted }).map(({ key }) => key);

test("folders of one repository share their memory, and other repositories do not", async () => {
  await using folder = await tempFolder();
  putRepository(folder.at("one"));
  putRepository(folder.at("two"));
  mkdirSync(folder.at("one/deep/inside"), { recursive: true });
  expect(keys(folder.at("one/deep/inside"))).toEqual(keys(folder.at("one")));
  expect(keys(folder.at("two"))).not.toEqual(keys(folder.at("one")));
  const one = localAt(folder.at("home"), folder.at("one"));
  await one.store(accepted("One uses tabs."));
  await one.store(accepted("The user likes tea.", { scope: "user" }));
  const two = localAt(folder.at("home"), folder.at("two"));
  expect(await toldAt(two)).not.toContain("tabs");
  expect(await toldAt(two)).toContain("tea");
});

test("a linked worktree shares the memory of its repository, but not a folder that only claims to be one", async () => {
  await using folder = await tempFolder();
  putRepository(folder.at("main"));
  const linked = folder.at("main/.git/worktrees/side");
  putFile(join(linked, "gitdir"), `${folder.at("side/.git")}\n`);
  putFile(join(linked, "commondir"), "../..\n");
  putFile(folder.at("side/.git"), `gitdir: ${linked}\n`);
  putFile(folder.at("thief/.git"), `gitdir: ${linked}\n`);
  expect(keys(folder.at("side"))).toEqual(keys(folder.at("main")));
  expect(keys(folder.at("thief"))).not.toEqual(keys(folder.at("main")));
});

test("a folder's stated origin is used only where the user trusts the folder", async () => {
  await using folder = await tempFolder();
  putRepository(folder.at("mine"), "git@github.com:me/thing.git");
  putRepository(folder.at("clone"), "https://someone:password@GitHub.com/me/thing.git/");
  expect(keys(folder.at("clone"))).not.toEqual(keys(folder.at("mine")));
  expect(keys(folder.at("clone"), true)[0]).toBe(keys(folder.at("mine"), true)[0]);
  const before = localAt(folder.at("home"), folder.at("mine"));
  await before.store(accepted("Stored before there was trust."));
  const mine = localAt(folder.at("home"), folder.at("mine"), { isTrusted: true });
  await mine.store(accepted("Stored with trust."));
  expect(await toldAt(mine)).toContain("Stored before there was trust.");
  expect(await toldAt(localAt(folder.at("home"), folder.at("clone")))).toBe("");
  const clone = await toldAt(localAt(folder.at("home"), folder.at("clone"), { isTrusted: true }));
  expect(clone).toContain("Stored with trust.");
  expect(clone).not.toContain("Stored before");
});

test.each([
  ["git@github.com:me/thing.git", "github.com/me/thing"],
  ["ssh://git@Host.example:22/me/thing", "host.example:22/me/thing"],
  ["https://user:secret@host.example/a/b/c.git", "host.example/a/b/c"],
  ["/srv/git/thing.git", undefined],
  ["../thing", undefined],
  ["file:///srv/thing", undefined],
  ["nonsense", undefined],
])("the origin %s is %s", (url, expected) => {
  expect(originUrlIn(`[core]\n[remote "origin"]\n\turl = ${url}\n[branch "main"]\n`)).toBe(expected);
});
