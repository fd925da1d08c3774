import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { openFolderByName, PathError } from "../../src/lib/node/paths.ts";
import { openForWriting, type WriteScope } from "../../src/lib/node/paths-write.ts";
import { countOperations, type Fault, faultDisk } from "../../src/testing/fault-disk.ts";
import { workspace } from "./workspace.ts";

async function overwrite(path: string, content: string, scope: WriteScope): Promise<void> {
  const target = await openForWriting(path, scope);
  try {
    await target.write(Buffer.from(content));
  } finally {
    await target.close();
  }
}

async function operationsOfAWrite(): Promise<number> {
  const { root, write } = workspace();
  const path = write("count.txt", "old");
  const { disk, operations } = countOperations(nodeDisk);
  await overwrite(path, "new", { cwd: root, roots: [root], disk });
  return operations.length;
}

describe("a write that goes wrong at any operation", () => {
  const faults: Fault[] = [
    { kind: "fail", code: "EIO" },
    { kind: "fail", code: "ENOSPC", lasting: true },
    { kind: "tear", share: 0.5, end: "fail", code: "ENOSPC" },
  ];

  it.each(faults)(
    "a write that fails at any operation leaves the old file or the new, and nothing beside it: %j",
    async (fault) => {
      const last = await operationsOfAWrite();
      expect(last).toBeGreaterThan(4);
      for (let at = 1; at <= last; at++) {
        const { root, write } = workspace();
        const path = write("a.txt", "old content");
        const scope = { cwd: root, roots: [root], disk: faultDisk(nodeDisk, { at, fault }) };
        await expect(overwrite(path, "new content", scope)).rejects.toThrow(PathError);
        expect(["old content", "new content"]).toContain(readFileSync(path, "utf8"));
        expect(readdirSync(root)).toEqual(["a.txt"]);
      }
    },
  );

  it("a write leaves the old or the new content when the disk fails for good, even for the cleanup", async () => {
    const last = await operationsOfAWrite();
    for (let at = 1; at <= last; at++) {
      const { root, write } = workspace();
      const path = write("a.txt", "old content");
      const disk = faultDisk(nodeDisk, { at, fault: { kind: "fail", code: "EIO", lasting: true } });
      await expect(overwrite(path, "new content", { cwd: root, roots: [root], disk })).rejects.toThrow(PathError);
      expect(["old content", "new content"]).toContain(readFileSync(path, "utf8"));
    }
  });
});

describe("the way without descriptors", () => {
  it("files are written and folders made without descriptors, and the outside is refused all the same", async () => {
    const { root, outside, write } = workspace();
    const scope = { cwd: root, roots: [root], openFolder: openFolderByName };
    const path = write("a.txt", "old");
    await overwrite(path, "new", scope);
    await overwrite(join(root, "x/y/z.txt"), "deep", scope);
    expect([readFileSync(path, "utf8"), readFileSync(join(root, "x/y/z.txt"), "utf8")]).toEqual(["new", "deep"]);
    await expect(overwrite(join(outside, "secret.txt"), "x", scope)).rejects.toThrow("outside the allowed folders");
  });
});

describe("a place", () => {
  it.runIf(process.platform === "linux")("a write leaves no descriptor open, whatever path it was given", async () => {
    const { root, outside, write } = workspace();
    const scope = { cwd: root, roots: [root] };
    write("file.txt", "x");
    symlinkSync(outside, join(root, "out"));
    symlinkSync("nothing", join(root, "dangling"));
    symlinkSync("file.txt", join(root, "link"));
    const paths = ["out/x", "dangling", "file.txt/x", "out", ".", "/proc/x", "link", "new/deep/er.txt", "\0"];
    const before = readdirSync("/proc/self/fd").length;
    for (let round = 0; round < 20; round++) {
      for (const path of paths) await overwrite(path, `${round}`, scope).catch(() => undefined);
    }
    expect(readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before + 1);
  });

  it("a write refuses a target that appeared or changed after it was opened", async () => {
    const { root, write } = workspace();
    const scope = { cwd: root, roots: [root] };
    const old = write("a.txt", "1");
    for (const path of [old, join(root, "b.txt")]) {
      const target = await openForWriting(path, scope);
      writeFileSync(path, "somebody else's");
      await expect(target.write(Buffer.from("mine"))).rejects.toThrow("was changed");
      await target.close();
      expect(readFileSync(path, "utf8")).toBe("somebody else's");
    }
  });

  it("a write checks the target once more right before it replaces the content", async () => {
    const { root, write } = workspace();
    const path = write("a.txt", "1");
    const disk = {
      ...nodeDisk,
      async sync(fd: number) {
        await nodeDisk.sync(fd);
        writeFileSync(path, "somebody else's");
      },
    };
    await expect(overwrite(path, "mine", { cwd: root, roots: [root], disk })).rejects.toThrow("was changed");
    expect([readFileSync(path, "utf8"), readdirSync(root)]).toEqual(["somebody else's", ["a.txt"]]);
  });

  it("a write gives a new file the mode of the umask and keeps the mode of an old file", async () => {
    const { root, write } = workspace();
    const path = write("a.txt", "1");
    const { mode } = statSync(path);
    await overwrite(path, "2", { cwd: root, roots: [root] });
    expect(statSync(path).mode).toBe(mode);
  });
});
