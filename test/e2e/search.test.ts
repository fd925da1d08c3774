/** Past sessions are found by what was said in them: through the built program. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

it("troupe search finds a turn, filters by folder and time, and names the session to resume", async () => {
  await using folder = await tempFolder();
  const [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
  mkdirSync(cwd);
  const model = script(folder.path, [{ say: "Use a xylophone." }]);
  await troupe(["-p", "which instrument?", "--model", model, "--session-id", "music-1"], { cwd, home });
  const search = async (...args: string[]) => (await troupe(["search", ...args], { cwd, home })).stdout;
  const [text, json, elsewhere, later] = await Promise.all([
    search("xylo", "instrument"),
    search("xylo", "--json", "--cwd", ".", "--since", "1d"),
    search("xylo", "--cwd", home),
    search("xylo", "--since", "2999-01-01"),
  ]);
  expect(text).toMatch(/^music-1 {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}\S+project\n/);
  expect(text).toContain("message 1: which »instrument«? Use a »xylophone«.");
  expect(text).toContain("--resume music-1");
  expect(JSON.parse(json)).toMatchObject([{ sessionId: "music-1", places: [{ source: "turn", number: 1 }] }]);
  expect(elsewhere).toBe("No matches for: xylo\n");
  expect(later).toBe("No matches for: xylo\n");
  expect(await troupe(["sessions", "reindex"], { cwd, home })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Read 1 session\. The index is in .*session-store\.db\.\n$/),
  });
  expect(await troupe(["search", "x", "--since", "soon"], { cwd, home })).toMatchObject({ code: 2 });
});

it("troupe search ranks messages above file names, lists each session once, and can narrow to a folder", async () => {
  await using folder = await tempFolder();
  const [cwd, other, home] = ["project", "other", "home"].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [cwd, other]) mkdirSync(path);
  const talk = ["--model", script(folder.path, [{ say: "a walrus is heavy" }]), "--session-id", "talk-01"];
  await troupe(["-p", "tell me", ...talk], { cwd: other, home });
  await troupe(["-p", "and the walrus again", ...talk], { cwd: other, home });
  for (const id of ["file-01", "file-02"]) {
    const create = { call: { name: "create", arguments: { path: `${id}/walrus.txt`, file_text: "x\n" } } };
    const model = script(folder.path, [create, { say: "made" }]);
    await troupe(["-p", "make it", "--allow-tool", "write", "--model", model, "--session-id", id], { cwd, home });
  }
  const run = async (...args: string[]) => JSON.parse((await troupe([...args, "--json"], { cwd, home })).stdout);
  const found = (await run("search", "walrus")) as { sessionId: string; places: { source: string }[] }[];
  expect(found.map(({ sessionId }) => sessionId)).toEqual(["talk-01", expect.any(String), expect.any(String)]);
  expect(found.map(({ places }) => places.map(({ source }) => source))).toEqual([["turn", "turn"], ["file"], ["file"]]);
  expect(await run("search", "walrus", "--limit", "1")).toMatchObject([{ sessionId: "talk-01" }]);
  expect(await run("search", "walrus", "--repo", ".")).toHaveLength(2);
  expect(await run("sessions", "list", "--here")).toMatchObject([{ sessionId: "file-02" }, { sessionId: "file-01" }]);
  expect(await run("sessions", "list", "--limit", "1")).toMatchObject([{ sessionId: "file-02" }]);
});
