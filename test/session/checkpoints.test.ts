import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Checkpoints } from "../../src/checkpoints/checkpoints.ts";
import { undo } from "../../src/checkpoints/undo.ts";
import { type Disk, nodeDisk } from "../../src/lib/node/disk.ts";
import { temporaryName } from "../../src/lib/node/temporaries.ts";
import { countOperations, faultDisk } from "../../src/testing/fault-disk.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { applyPatch } from "../../src/tools/files/apply-patch.ts";
import { create } from "../../src/tools/files/create.ts";
import { edit } from "../../src/tools/files/edit.ts";
import { rememberedFiles } from "../../src/tools/files/files.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { call, contextFor, type Workspace, workspace } from "../tools/workspace.ts";

interface Stage extends Workspace {
  readonly checkpoints: Checkpoints;
  readonly session: string;
  turn: string;
  /** A tool call of the agent, by default with its own id: call_1, call_2, … */
  run(tool: Tool, input: unknown, toolCallId?: string): Promise<void>;
  /** As a later process would open them. */
  reopened(disk?: Disk): Checkpoints;
  tree(): Record<string, string>;
}

function stage(): Stage {
  const space = workspace();
  const session = join(space.root, "../session");
  const open = (disk: Disk = nodeDisk) =>
    new Checkpoints({ directory: session, disk, stamp: fauxStamp(), messageId: () => made.turn });
  let calls = 0;
  const checkpoints = open();
  const files = rememberedFiles({ keep: (changes) => checkpoints.keep(changes) });
  const made: Stage = {
    ...space,
    checkpoints,
    session,
    turn: "turn 1",
    reopened: open,
    run: async (tool, input, toolCallId = `call_${++calls}`) => {
      await call(tool, input, { ...contextFor(space.root), toolCallId, files } as never);
    },
    tree: () => treeOf(space.root),
  };
  return made;
}

/** Everything below a folder: contents, modes, links. */
function treeOf(root: string): Record<string, string> {
  const entries = readdirSync(root, { recursive: true, encoding: "utf8" }).sort();
  return Object.fromEntries(
    entries.map((name) => {
      const path = join(root, name);
      const stat = lstatSync(path);
      if (stat.isSymbolicLink()) return [name, `-> ${readlinkSync(path)}`];
      const mode = (stat.mode & 0o7777).toString(8);
      return [name, stat.isDirectory() ? `folder ${mode}` : `${mode} ${readFileSync(path, "base64")}`];
    }),
  );
}

const oldBytes = "old \u00e9\r\nlines";

/** An edit, a created file in new folders, a deletion; all in one call. */
async function change(made: Stage): Promise<void> {
  chmodSync(made.write("run.sh", oldBytes), 0o750);
  made.write("ignored/data.bin", "precious\n");
  await made.run(edit, { path: "run.sh", old_str: "old", new_str: "new" });
  await made.run(create, { path: "a/b/c.txt", file_text: "c" });
  const patch =
    "--- a/ignored/data.bin\n+++ /dev/null\n@@ -1 +0,0 @@\n-precious\n--- a/run.sh\n+++ b/run.sh\n@@ -1 +1,2 @@\n+top\n new \u00e9\n";
  await made.run(applyPatch, { patch });
}

describe("undo", () => {
  it("undo reverts call after call, byte for byte, modes and folders included", async () => {
    const made = stage();
    chmodSync(made.write("run.sh", oldBytes), 0o750);
    made.write("ignored/data.bin", "precious\n");
    const before = made.tree();
    await change(made);
    expect((await made.checkpoints.changes()).map(({ toolCallId }) => toolCallId)).toEqual([
      "call_1",
      "call_2",
      "call_3",
      "call_3",
    ]);
    const checkpoints = made.reopened();
    const last = await undo({ kind: "last" }, { checkpoints, disk: nodeDisk });
    expect(last.restored).toEqual([join(made.root, "ignored/data.bin"), join(made.root, "run.sh")]);
    expect(existsSync(join(made.root, "a/b/c.txt"))).toBe(true);
    await undo({ kind: "last" }, { checkpoints, disk: nodeDisk });
    expect(existsSync(join(made.root, "a"))).toBe(false);
    await undo({ kind: "last" }, { checkpoints, disk: nodeDisk });
    expect(made.tree()).toEqual(before);
    await expect(undo({ kind: "last" }, { checkpoints, disk: nodeDisk })).rejects.toThrow("nothing to undo");
  });

  it("undo reverts the last call alone where a provider uses its id again in a later answer", async () => {
    const made = stage();
    made.write("a.txt", "one");
    await made.run(edit, { path: "a.txt", old_str: "one", new_str: "two" }, "call_0");
    made.turn = "turn 2";
    await made.run(edit, { path: "a.txt", old_str: "two", new_str: "three" }, "call_0");
    const { checkpoints } = made;
    await undo({ kind: "last" }, { checkpoints, disk: nodeDisk });
    expect(readFileSync(join(made.root, "a.txt"), "utf8")).toBe("two");
    await undo({ kind: "last" }, { checkpoints, disk: nodeDisk });
    expect(readFileSync(join(made.root, "a.txt"), "utf8")).toBe("one");
  });

  it("undo goes back to a call, or reverts a whole answer", async () => {
    const made = stage();
    const path = made.write("a.txt", "0");
    for (const [turn, old_str, new_str] of [
      ["1", "0", "1"],
      ["2", "1", "2"],
      ["2", "2", "3"],
      ["3", "3", "4"],
    ] as const) {
      made.turn = turn;
      await made.run(edit, { path, old_str, new_str });
    }
    await undo({ kind: "back-to", toolCallId: "call_4" }, { checkpoints: made.checkpoints, disk: nodeDisk });
    expect(readFileSync(path, "utf8")).toBe("3");
    await undo({ kind: "message" }, { checkpoints: made.checkpoints, disk: nodeDisk });
    expect(readFileSync(path, "utf8")).toBe("1");
    const unknown = undo({ kind: "back-to", toolCallId: "call_9" }, { checkpoints: made.checkpoints, disk: nodeDisk });
    await expect(unknown).rejects.toThrow("Call call_9 made no changes in this session.");
  });

  it("undo changes nothing when one of the files was changed since, and force saves the replaced content", async () => {
    const made = stage();
    await change(made);
    const path = join(made.root, "run.sh");
    writeFileSync(path, "by hand");
    const after = made.tree();
    const { checkpoints } = made;
    expect(await undo({ kind: "message" }, { checkpoints, disk: nodeDisk })).toEqual({
      restored: [],
      conflicts: [path],
      savedAs: {},
      left: [],
    });
    expect(made.tree()).toEqual(after);
    const forced = await undo({ kind: "message" }, { checkpoints, disk: nodeDisk, force: true });
    expect(readFileSync(path, "utf8")).toBe(oldBytes);
    expect(readFileSync(forced.savedAs[path] ?? "", "utf8")).toBe("by hand");
  });

  it("undo changes no file outside when a folder was replaced by a link", async () => {
    const made = stage();
    made.write("sub/secret.txt", "mine");
    await made.run(edit, { path: "sub/secret.txt", old_str: "mine", new_str: "changed" });
    rmSync(join(made.root, "sub"), { recursive: true });
    symlinkSync(made.outside, join(made.root, "sub"));
    const attempt = undo({ kind: "last" }, { checkpoints: made.checkpoints, disk: nodeDisk, force: true });
    await expect(attempt).rejects.toThrow("leads to");
    expect(readFileSync(join(made.outside, "secret.txt"), "utf8")).toBe("SECRET\n");
  });

  it("undo gives the same result when it was interrupted at any operation and is run again", async () => {
    const probe = stage();
    await change(probe);
    const counted = countOperations(nodeDisk);
    await undo({ kind: "message" }, { checkpoints: probe.reopened(counted.disk), disk: counted.disk });
    const goal = probe.tree();
    expect(counted.operations.length).toBeGreaterThan(10);
    for (let at = 1; at <= counted.operations.length; at++) {
      const made = stage();
      await change(made);
      // From then on nothing reaches the disk, as if the process were dead.
      const disk = faultDisk(nodeDisk, { at, fault: { kind: "fail", code: "EIO", lasting: true } });
      await expect(undo({ kind: "message" }, { checkpoints: made.reopened(disk), disk })).rejects.toThrow();
      await undo({ kind: "message" }, { checkpoints: made.reopened(), disk: nodeDisk }).catch((error: unknown) => {
        expect(String(error)).toContain("nothing to undo");
      });
      expect(withoutTemporaries(made.tree()), `operation ${at}`).toEqual(goal);
    }
  });
});

describe("checkpoints", () => {
  it("checkpoints are on disk before the change, or the change is not made", async () => {
    const counted = countOperations(nodeDisk);
    const run = async (disk: Disk): Promise<{ path: string; session: string; error: unknown }> => {
      const space = workspace();
      const session = join(space.root, "../session");
      const checkpoints = new Checkpoints({ directory: session, disk, stamp: fauxStamp() });
      const files = rememberedFiles({ keep: (changes) => checkpoints.keep(changes) });
      const path = space.write("a.txt", "old");
      const context = { ...contextFor(space.root), files };
      const error = await call(edit, { path, old_str: "old", new_str: "new" }, context).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      return { path, session, error };
    };
    await run(counted.disk);
    for (let at = 1; at <= counted.operations.length; at++) {
      const { path, error } = await run(faultDisk(nodeDisk, { at, fault: { kind: "fail", code: "EIO" } }));
      expect(String(error), `operation ${at}`).toContain("Nothing was changed");
      expect(readFileSync(path, "utf8")).toBe("old");
    }
  });

  it("checkpoints survive a torn last line, and new numbers follow the old ones", async () => {
    const made = stage();
    const path = made.write("a.txt", "1");
    await made.run(edit, { path, old_str: "1", new_str: "2" });
    await made.run(edit, { path, old_str: "2", new_str: "3" });
    const index = join(made.session, "checkpoints/changes.jsonl");
    truncateSync(index, statSync(index).size - 20);
    const checkpoints = made.reopened();
    const before = { content: Buffer.from("3"), mode: 0o644 };
    await checkpoints.keep([{ path, toolCallId: "x", before, after: "missing", madeFolders: [] }]);
    expect((await checkpoints.changes()).map(({ seq, toolCallId }) => [seq, toolCallId])).toEqual([
      [1, "call_1"],
      [2, "x"],
    ]);
  });

  it("checkpoints store the same content once, readable for the owner only", async () => {
    const made = stage();
    for (const name of ["a.txt", "b.txt"]) {
      made.write(name, "same");
      await made.run(edit, { path: name, old_str: "same", new_str: name });
    }
    const objects = join(made.session, "checkpoints/objects");
    const [object = "", ...others] = readdirSync(objects);
    expect(others).toEqual([]);
    expect((statSync(join(objects, object)).mode & 0o777).toString(8)).toBe("600");
    expect((statSync(objects).mode & 0o777).toString(8)).toBe("700");
  });

  it("checkpoints are refused when their content was damaged", async () => {
    const made = stage();
    const path = made.write("a.txt", "old");
    await made.run(edit, { path, old_str: "old", new_str: "new" });
    const objects = join(made.session, "checkpoints/objects");
    writeFileSync(join(objects, readdirSync(objects)[0] ?? ""), "forged");
    const attempt = undo({ kind: "last" }, { checkpoints: made.checkpoints, disk: nodeDisk });
    await expect(attempt).rejects.toThrow("missing or damaged");
    expect(readFileSync(path, "utf8")).toBe("new");
  });
});

describe("checkpoints of whole folders", () => {
  const plant = (made: Stage): void => {
    made.write("data/.gitignore", "*\n");
    made.write("data/deep/er/file.bin", Buffer.from([0, 1, 255]));
    chmodSync(made.write("data/tool.sh", "#!"), 0o755);
    mkdirSync(join(made.root, "data/empty"), { mode: 0o700 });
    symlinkSync("../outside-of-it", join(made.root, "data/link"));
    made.write("other.txt", "stays");
  };

  it("checkpoints of whole folders restore them after a command destroyed them", async () => {
    const made = stage();
    plant(made);
    const before = made.tree();
    const kept = await made.checkpoints.storeTree([join(made.root, "data")], "call_rm");
    rmSync(join(made.root, "data"), { recursive: true });
    await kept.settle();
    await undo({ kind: "last" }, { checkpoints: made.reopened(), disk: nodeDisk });
    expect(made.tree()).toEqual(before);
  });

  it("checkpoints of whole folders restore them when the process died early, and keep others' additions", async () => {
    const made = stage();
    plant(made);
    const before = made.tree();
    await made.checkpoints.storeTree([join(made.root, "data")], "call_rm");
    rmSync(join(made.root, "data/deep"), { recursive: true });
    made.write("data/new.txt", "new");
    await undo({ kind: "last" }, { checkpoints: made.reopened(), disk: nodeDisk });
    const { "data/new.txt": added, ...rest } = made.tree();
    expect(rest).toEqual(before);
    expect(added).toBeDefined();
  });

  it("checkpoints of whole folders are not read in full when a command made all of their files huge", async () => {
    const made = stage();
    const paths = ["a", "b", "c", "d"].map((name) => made.write(`data/${name}`, name));
    const kept = await made.checkpoints.storeTree([join(made.root, "data")], "call_grow");
    for (const path of paths.slice(0, 3)) truncateSync(path, 60 * 1024 * 1024);
    rmSync(join(made.root, "data/d"));
    await kept.settle();
    const changes = (await made.checkpoints.changes()).filter(({ before }) => before.kind === "file");
    expect(changes.map(({ after }) => after?.kind)).toEqual(["file", "file", undefined, "missing"]);
  });

  it("checkpoints of whole folders do not copy files behind a folder that a command replaced by a link", async () => {
    const { root, outside, checkpoints } = stage();
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, "secret"), "key");
    symlinkSync(outside, join(root, "swapped"));
    const kept = await checkpoints.storeTree([join(root, "swapped/secret")], "call_1");
    expect(kept.unreadable).toEqual([join(root, "swapped/secret")]);
    rmSync(join(outside, "secret"));
    await expect(undo({ kind: "last" }, { checkpoints, disk: nodeDisk })).rejects.toThrow("nothing to undo");
  });

  it("checkpoints of whole folders are refused, and nothing is stored, when there is too much", async () => {
    const made = stage();
    const path = made.write("big.bin", "");
    truncateSync(path, 65 * 1024 * 1024);
    await expect(made.checkpoints.storeTree([path], "call_1")).rejects.toThrow(
      `${path}: more than 64 MiB or 10000 files, too large to copy.`,
    );
    expect(existsSync(join(made.session, "checkpoints"))).toBe(false);
  });
});

describe("a temporary file of a killed write", () => {
  it.runIf(process.platform === "linux")(
    "a temporary file of a killed write is removed at once when its process is gone",
    async () => {
      const made = stage();
      await change(made);
      const name = temporaryName();
      const gone = name.replace(`-${process.pid.toString(36)}_`, `-${(4_194_304).toString(36)}_`);
      const [left, living] = [made.write(gone), made.write(name)];
      await made.reopened().sweep();
      expect([existsSync(left), existsSync(living)]).toEqual([false, true]);
    },
  );

  it("a temporary file of a killed write is removed from beside the last changed files when old enough", async () => {
    const made = stage();
    await change(made);
    const [old, young] = [made.write(".troupe-0123456789ab.tmp"), made.write(".troupe-ba9876543210.tmp")];
    utimesSync(old, 1, 1);
    await made.reopened().sweep();
    expect([existsSync(old), existsSync(young)]).toEqual([false, true]);
  });
});

const withoutTemporaries = (tree: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(tree).filter(([name]) => !/(^|\/)\.troupe-\w+\.tmp$/.test(name)));
