import { mkdtemp, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { bootId, pidNamespace } from "../../src/lib/node/process-identity.ts";
import { type LockOptions, type LockResult, takeLock } from "../../src/store/lock.ts";

const minute = 60_000;

interface Left {
  readonly [member: string]: unknown;
  readonly ageMs?: number;
}

/** A folder with a lock that another process left, or holds. */
async function folderWith(left?: Left): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "troupe-lock-"));
  onTestFinished(() => nodeDisk.remove(directory));
  if (!left) return directory;
  const { ageMs = 0, ...members } = left;
  const path = join(directory, "lock");
  // Process 1 is there in every pid name space, and never began at this time.
  const holder = { pid: 1, started: "12", host: hostname(), boot: bootId(), pids: pidNamespace(), renewed: true };
  await writeFile(path, JSON.stringify({ ...holder, token: "other", ...members }));
  const at = new Date(Date.now() - ageMs);
  await utimes(path, at, at);
  return directory;
}

async function take(directory: string, more: Partial<LockOptions> = {}): Promise<LockResult> {
  const taken = await takeLock({ disk: nodeDisk, directory, pid: process.pid, token: "mine", ...more });
  onTestFinished(async () => {
    if (taken.kind === "taken") await taken.release();
  });
  return taken;
}

const elsewhere = { pids: "pid:[1]" };

describe.runIf(process.platform === "linux")("a lock of a process in another pid namespace", () => {
  it.each<[string, Left]>([
    ["another container with this host name", elsewhere],
    ["another container with a host name of its own", { ...elsewhere, host: "c0ffee" }],
    ["another machine", { ...elsewhere, host: "c0ffee", boot: "another" }],
    ["another machine with this host name", { ...elsewhere, boot: "another" }],
  ])(
    "a lock of another pid namespace is held while it is renewed, and free after a long pause: %s",
    async (_, left) => {
      const held = await take(await folderWith({ ...left, ageMs: 8_000 }));
      const host = left.host ?? hostname();
      expect(held).toMatchObject({ kind: "held", by: { pid: 1, host } });
      if (held.kind === "held") expect(held.by.advice).toMatch(/end it there.*try again in 1\d s/);
      expect(await take(await folderWith({ ...left, ageMs: minute }))).toMatchObject({ kind: "taken" });
      expect(await take(await folderWith({ ...left, ageMs: -minute }))).toMatchObject({ kind: "taken" });
    },
  );

  it("a lock of the same pid namespace is judged by the pid, whatever the host is called", async () => {
    const directory = await folderWith({ host: "c0ffee", ageMs: 0 });
    expect(await take(directory)).toMatchObject({ kind: "taken" });
  });

  it("a lock that an older version never renews names the file to delete", async () => {
    const directory = await folderWith({ host: "c0ffee", pids: "", renewed: false, ageMs: 60 * minute });
    expect(await take(directory)).toMatchObject({
      kind: "held",
      by: { advice: expect.stringContaining(`delete ${join(directory, "lock")}`) },
    });
  });
});

describe("a lock of a running process", () => {
  it("a lock is renewed by a timer, with its content unchanged, where the folder cannot be watched", async () => {
    const directory = await folderWith();
    const path = join(directory, "lock");
    const lock = await take(directory, { beatMs: 10, watch: () => undefined });
    const content = await readFile(path, "utf8");
    const long = new Date(Date.now() - minute);
    await utimes(path, long, long);
    await expect.poll(async () => (await stat(path)).mtimeMs).toBeGreaterThan(long.getTime() + 1000);
    expect(await readFile(path, "utf8")).toBe(content);
    if (lock.kind === "taken") await lock.release();
    await expect(stat(path)).rejects.toThrow("ENOENT");
  });

  it("a process that was frozen learns that another one took its lock over", async () => {
    const directory = await folderWith();
    const lock = await take(directory, { beatMs: minute });
    if (lock.kind !== "taken") throw new Error("the lock is held");
    expect(await lock.isOurs()).toBe(true);
    await writeFile(join(directory, "lock"), JSON.stringify({ pid: 1, token: "other" }));
    const { now } = Date;
    onTestFinished(() => {
      Date.now = now;
    });
    Date.now = () => now() + 5 * minute;
    expect(await lock.isOurs()).toBe(false);
  });
});

/** A lock of this process that looks, to others in this process, like that of another container. */
async function takenElsewhere(directory: string, more: Partial<LockOptions> = {}) {
  const lock = await take(directory, { token: "holder", ...more });
  if (lock.kind !== "taken") throw new Error("the lock is held");
  const path = join(directory, "lock");
  const content = JSON.parse(await readFile(path, "utf8"));
  await writeFile(path, `${JSON.stringify({ ...content, ...elsewhere, renewed: "on request" })}\n`);
  const long = new Date(Date.now() - minute);
  await utimes(path, long, long);
  return lock;
}

/** This holder never hears that another process asks. */
const deaf = { watch: () => ({ close: () => undefined }) };

describe.runIf(process.platform === "linux")("a lock that is renewed on request", () => {
  it("a lock renewed on request has no timer, and is renewed when another process tries to take it", async () => {
    const directory = await folderWith();
    const path = join(directory, "lock");
    await takenElsewhere(directory, { beatMs: 5 });
    const before = (await stat(path)).mtimeMs;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await stat(path)).mtimeMs).toBe(before);
    const other = await take(directory, { answerMs: 60_000 });
    expect(other).toMatchObject({ kind: "held", by: { advice: expect.stringContaining("end it there") } });
    expect((await stat(path)).mtimeMs).toBeGreaterThan(before);
  });

  it("a lock renewed on request is free when its holder does not answer, and the holder knows", async () => {
    const directory = await folderWith();
    const lock = await takenElsewhere(directory, { ...deaf, answerMs: 0 });
    expect(await take(directory, { answerMs: 50 })).toMatchObject({ kind: "taken" });
    expect(await lock.isOurs()).toBe(false);
  });

  it("a holder keeps its lock when it checks between a successor's last look and its rename", async () => {
    const directory = await folderWith();
    const lock = await takenElsewhere(directory, { ...deaf, answerMs: 0 });
    let checked: boolean | undefined;
    const rename = async (from: string, to: string): Promise<void> => {
      checked ??= await lock.isOurs();
      await nodeDisk.rename(from, to);
    };
    const other = await take(directory, { answerMs: 50, disk: { ...nodeDisk, rename } });
    expect({ checked, other: other.kind, after: await lock.isOurs() }).toEqual({
      checked: true,
      other: "held",
      after: true,
    });
  });

  it("a holder keeps its lock when it checks right after a successor has published its claim", async () => {
    const directory = await folderWith();
    const lock = await takenElsewhere(directory, { ...deaf, answerMs: 0 });
    let checked: boolean | undefined;
    const link = async (from: string, to: string): Promise<void> => {
      await nodeDisk.link(from, to);
      if (to.includes("lock.after-")) checked ??= await lock.isOurs();
    };
    const other = await take(directory, { answerMs: 50, disk: { ...nodeDisk, link } });
    expect({ checked, other: other.kind, after: await lock.isOurs() }).toEqual({
      checked: true,
      other: "held",
      after: true,
    });
  });
});
