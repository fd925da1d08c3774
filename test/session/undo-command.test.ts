import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Checkpoints } from "../../src/checkpoints/checkpoints.ts";
import type { Arguments } from "../../src/cli/args.ts";
import { undoCommand } from "../../src/cli/commands/undo.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { edit } from "../../src/tools/files/edit.ts";
import { rememberedFiles } from "../../src/tools/files/files.ts";
import { message } from "../store/support.ts";
import { call, contextFor, workspace } from "../tools/workspace.ts";

/** A folder, a session that worked in it, and the command as a person gives it. */
async function stage() {
  const space = workspace();
  const home = join(space.root, "../home");
  const store = jsonlStore({ root: home, disk: nodeDisk, stamp: systemStamp });
  const log = await store.create("session-1");
  await log.append(message(1), { barrier: false });
  const time = "2026-01-01T00:00:00.000Z";
  await log.writeSummary({ sessionId: "session-1", cwd: space.root, createdAt: time, updatedAt: time, turns: 1 });
  const checkpoints = new Checkpoints({ directory: log.directory, disk: nodeDisk, stamp: systemStamp });
  const files = rememberedFiles({ keep: (changes) => checkpoints.keep(changes) });
  const path = space.write("a.txt", "old\n");
  await call(edit, { path, old_str: "old", new_str: "new" }, { ...contextFor(space.root), files } as never);
  const run = async (words: string[], flags: Record<string, string | true> = {}, cwd = space.root) => {
    let printed = "";
    const given: Arguments = {
      words: ["undo", ...words],
      flags: Object.keys(flags),
      without: () => [],
      text: (name) => (typeof flags[name] === "string" ? flags[name] : undefined),
      has: (name) => flags[name] === true,
      list: () => [],
      amount: () => undefined,
      choice: () => undefined,
    };
    const print = (text: string): void => {
      printed += text;
    };
    const code = await undoCommand(given, { environment: { TROUPE_HOME: home }, cwd, print });
    return { code, printed };
  };
  return { ...space, path, log, run };
}

describe("troupe undo", () => {
  it("troupe undo lists what can be undone, undoes it, and then has nothing left", async () => {
    const { path, log, run } = await stage();
    await log.close();
    const list = await run([], { list: true });
    expect(list.printed).toMatch(/^call_1 {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n {2}changed .*a\.txt\n$/);
    expect(await run([])).toEqual({ code: 0, printed: `Restored 1 file:\n  ${path}\n` });
    expect(readFileSync(path, "utf8")).toBe("old\n");
    expect((await run(["list"])).printed).toBe("Nothing to undo in this session.\n");
    await expect(run([], { session: "session-1" })).rejects.toThrow("There is nothing to undo in this session.");
  });

  it("troupe undo names the files that changed since, and with --force the place of their saved contents", async () => {
    const { path, log, run, write } = await stage();
    await log.close();
    write("a.txt", "by hand\n");
    await expect(run(["call_1"])).rejects.toMatchObject({
      message: `Nothing was undone: these files have changed since: ${path}.`,
      hint: "Use --force to restore them anyway; their current content is saved.",
    });
    const { printed } = await run(["turn"], { force: true });
    const kept = /is saved in (.+)\n/.exec(printed)?.[1] ?? "";
    expect([readFileSync(path, "utf8"), readFileSync(kept, "utf8")]).toEqual(["old\n", "by hand\n"]);
  });

  it("troupe undo never waits: a session in use and other mistakes cause errors of one line", async () => {
    const { outside, log, run, path } = await stage();
    await expect(run([], {}, outside)).rejects.toThrow("No session has worked in this folder.");
    await expect(run(["a", "b"])).rejects.toThrow("troupe undo takes one tool call at most");
    await expect(run(["call_9"])).rejects.toThrow(/in use by process|made no changes in this session/);
    expect(readFileSync(path, "utf8")).toBe("new\n");
    await log.close();
  });
});
