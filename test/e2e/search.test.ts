/** Past sessions are found by what was said in them: through the built program. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

it("troupe search finds a turn, narrows by folder and time, and names the session to go on with", async () => {
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
  expect(text).toMatch(/^music-1 {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}message 1 {2}\S+project\n/);
  expect(text).toContain("which »instrument«? Use a »xylophone«.");
  expect(text).toContain("--resume music-1");
  expect(JSON.parse(json)).toMatchObject([{ sessionId: "music-1", source: "turn", number: 1 }]);
  expect(elsewhere).toContain("Nothing said so far");
  expect(later).toContain("Nothing said so far");
  expect(await troupe(["sessions", "reindex"], { cwd, home })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Read 1 session\. The index is in .*session-store\.db\.\n$/),
  });
  expect(await troupe(["search", "x", "--since", "soon"], { cwd, home })).toMatchObject({ code: 2 });
});
