import { mkdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { TroupeError } from "../../protocol/errors.ts";
import { tempFolder } from "../../testing/temp-folder.ts";
import { systemStamp } from "../stamp.ts";
import { type Disk, nodeDisk } from "./disk.ts";
import { withFileLock } from "./file-lock.ts";
import { startTime } from "./process-identity.ts";

const lockFile = (path: string, more: { pid: number; started?: string; token?: string; host?: string }): void =>
  writeFileSync(`${path}.lock`, JSON.stringify({ host: hostname(), token: `t-${more.pid}`, ...more }));

const enter = (path: string, more: { disk?: Disk; maxWaitMs?: number } = {}): Promise<string> =>
  withFileLock({ path, disk: nodeDisk, Failure: TroupeError, maxWaitMs: 60, ...more }, async () => "done");

describe("a lock on a file", () => {
  it("a file lock is taken over from a process that died, and awaited from one that lives", async () => {
    await using folder = await tempFolder();
    const path = folder.at("f.json");
    lockFile(path, { pid: 2 ** 22 - 3 });
    expect(await enter(path)).toBe("done");
    lockFile(path, { pid: process.pid, started: (await startTime(process.pid)) ?? "" });
    await expect(enter(path)).rejects.toMatchObject({
      name: "TroupeError",
      kind: "storage",
      message: `${path} is locked by another process (${process.pid}), which has not finished.`,
      hint: expect.stringContaining(`${path}.lock`),
    });
    expect(Object.keys(await folder.tree())).toEqual(["f.json.lock"]);
  });

  it("a file lock is awaited longer while it passes from one owner to the next", async () => {
    await using folder = await tempFolder();
    const path = folder.at("f.json");
    let now = 0;
    const stamp = { ...systemStamp, monotonic: () => now };
    const done: number[] = [];
    const owners = Array.from({ length: 6 }, (_, index) =>
      withFileLock({ path, disk: nodeDisk, Failure: TroupeError, stamp, maxWaitMs: 1_500 }, async () => {
        now += 1_000;
        done.push(index);
      }),
    );
    await Promise.all(owners);
    expect(done.toSorted()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it.runIf(process.platform === "linux")(
    "a file lock is taken over when its pid belongs to another process by now",
    async () => {
      await using folder = await tempFolder();
      const path = folder.at("f.json");
      lockFile(path, { pid: process.pid, started: "1" });
      expect(await enter(path)).toBe("done");
      expect(await folder.tree()).toEqual({});
    },
  );

  it("a file lock waits for a lock of another machine, because that process cannot be checked from here", async () => {
    await using folder = await tempFolder();
    const path = folder.at("f.json");
    lockFile(path, { pid: 2 ** 22 - 3, host: "elsewhere" });
    await expect(enter(path)).rejects.toThrow("is locked by another process");
  });

  it("a file lock stops waiting when the lock is a folder or has meaningless content", async () => {
    await using folder = await tempFolder();
    mkdirSync(folder.at("a.lock"));
    writeFileSync(folder.at("b.lock"), "[".repeat(100_000));
    await expect(enter(folder.at("a"))).rejects.toThrow("which has not finished");
    await expect(enter(folder.at("b"))).rejects.toThrow("which has not finished");
  });

  it("a file lock lets one process in at a time and is removed after a failure", async () => {
    await using folder = await tempFolder();
    let inside = 0;
    let most = 0;
    const failing = () =>
      withFileLock({ path: folder.at("f.json"), disk: nodeDisk, Failure: TroupeError }, async () => {
        most = Math.max(most, ++inside);
        await new Promise((resume) => setTimeout(resume, 2));
        inside--;
        throw new Error("no");
      }).catch(() => undefined);
    await Promise.all(Array.from({ length: 6 }, failing));
    expect([most, await folder.tree()]).toEqual([1, {}]);
  });

  it.each(["link", "write", "rename"] as const)(
    "a file lock leaves no file of its own behind when %s fails",
    async (operation) => {
      await using folder = await tempFolder();
      const path = folder.at("f.json");
      lockFile(path, { pid: 2 ** 22 - 3 });
      const full = () => Promise.reject(Object.assign(new Error("full"), { code: "ENOSPC" }));
      await expect(enter(path, { disk: { ...nodeDisk, [operation]: full } })).rejects.toThrow("full");
      expect(Object.keys(await folder.tree())).toEqual(["f.json.lock"]);
      expect(await enter(path)).toBe("done");
    },
  );

  it("a file lock works where the file system has no hard links", async () => {
    await using folder = await tempFolder();
    const link = () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" }));
    expect(await enter(folder.at("f.json"), { disk: { ...nodeDisk, link } })).toBe("done");
    expect(await folder.tree()).toEqual({});
  });

  it("a file lock keeps the result of the work when the lock cannot be removed", async () => {
    await using folder = await tempFolder();
    const unlink = () => Promise.reject(Object.assign(new Error("broken"), { code: "EIO" }));
    expect(await enter(folder.at("f.json"), { disk: { ...nodeDisk, unlink } })).toBe("done");
  });
});
