/** A conversation and its files go back and forth, and a session becomes two: through the built program. */

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

it("troupe rewind removes the last messages, and troupe fork copies a session up to a message", async () => {
  await using folder = await tempFolder();
  const [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
  mkdirSync(cwd);
  const run = (...args: string[]) => troupe(args, { cwd, home });
  const create = { call: { name: "create", arguments: { path: "a.txt", file_text: "made\n" } } };
  const ask = (prompt: string, steps: readonly object[], ...more: string[]) =>
    run("-p", prompt, "--model", script(folder.path, steps), "--allow-tool", "write", ...more);
  await ask("hello", [{ say: "hi" }], "--session-id", "first-1");
  await ask("make a file", [create, { say: "made it" }], "--continue");

  const list = await run("rewind", "--list");
  expect(list.stdout).toMatch(
    /^ +1 {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}hello {2}\[1 file since\]\n +2 .*make a file {2}\[1 file since \+1 −0\]\n$/,
  );
  const dry = await run("rewind", "--to", "2", "--files", "--dry-run");
  expect(dry.stdout).toMatch(/created since, would be restored: .*a\.txt \(\+1 −0\)/);
  expect(existsSync(join(cwd, "a.txt"))).toBe(true);

  const rewound = await run("rewind", "--to", "2", "--files");
  expect(rewound).toMatchObject({ code: 0, stdout: expect.stringContaining("1 file changed back:") });
  expect(existsSync(join(cwd, "a.txt"))).toBe(false);
  expect((await run("sessions", "show", "first-1")).stdout).not.toContain("make a file");
  expect(await run("rewind", "--to", "2")).toMatchObject({ code: 2, stderr: expect.stringContaining("1 message") });

  expect(await run("rewind", "--restore", "--files")).toMatchObject({ code: 0 });
  expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("made\n");
  expect((await run("sessions", "show", "first-1")).stdout).toContain("make a file");

  const fork = JSON.parse((await run("fork", "--at", "2", "--json", "--session", "first-1")).stdout) as {
    sessionId: string;
  };
  const shown = (await run("sessions", "show", fork.sessionId)).stdout;
  expect(shown).toContain("> hello");
  expect(shown).not.toContain("make a file");
  expect((await ask("and now?", [{ say: "here" }], "--resume", fork.sessionId)).stdout).toBe("here\n");
});
