import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, rename, stat, symlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { digestOf } from "../../src/catalog/pins.ts";
import { listTrusted, readTrust, recordTrust, removeTrust } from "../../src/catalog/trust.ts";
import type { Json } from "../../src/lib/json.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import type { PinnedItem } from "../../src/lib/pinned-item.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { leastProcessorTime } from "../support/work.ts";

const ports = { disk: nodeDisk, stamp: systemStamp };
const item = (kind: PinnedItem["kind"], id: string, value: Json): PinnedItem => ({
  kind,
  id,
  digest: digestOf(value),
  shown: JSON.stringify(value),
});

async function stage(): Promise<TempFolder & { home: string; folder: string }> {
  const temp = await tempFolder({ "work/README.md": "" });
  return Object.assign(temp, { home: temp.at("home"), folder: temp.at("work") });
}

describe("trust in a folder", () => {
  it("trust in a folder is absent before it is given, and reading it writes nothing", async () => {
    await using place = await stage();
    const book = readTrust(place.home);
    expect(book.notices).toEqual([]);
    expect(book.of(place.folder).state).toBe("none");
    expect(book.of(place.folder).check(item("hook", "a", 1))).toBe("untrusted");
    expect(Object.keys(await place.tree())).toEqual(["work/README.md"]);
  });

  it("A05: trust in a folder approves exactly what was recorded: changed server arguments block it", async () => {
    await using place = await stage();
    const approved = { command: "node", args: ["server.js"], env: ["TOKEN"] };
    const items = [item("mcp", "files", approved)];
    await recordTrust({ stateRoot: place.home, folder: place.folder, items, ...ports });
    const trust = readTrust(place.home).of(place.folder);
    expect(trust.state).toBe("trusted");
    const reordered = { env: ["TOKEN"], args: ["server.js"], command: "node" };
    expect(trust.check(item("mcp", "files", reordered))).toBe("approved");
    expect(trust.check(item("mcp", "files", { ...approved, args: ["server.js", "--evil"] }))).toBe("changed");
    expect(trust.check(item("mcp", "other", approved))).toBe("new");
    expect(trust.check(item("hook", "files", approved))).toBe("new");
  });

  it("trust in a folder forgets items that are no longer named when the folder is trusted again", async () => {
    await using place = await stage();
    const record = (items: PinnedItem[]) =>
      recordTrust({ stateRoot: place.home, folder: place.folder, items, ...ports });
    await record([item("hook", "a", 1), item("hook", "b", 2)]);
    await record([item("hook", "b", 3)]);
    const trust = readTrust(place.home).of(place.folder);
    expect(trust.check(item("hook", "a", 1))).toBe("new");
    expect(trust.check(item("hook", "b", 2))).toBe("changed");
    expect(trust.check(item("hook", "b", 3))).toBe("approved");
  });

  it("trust in a folder does not extend to folders above and below, and is the same through a link", async () => {
    await using place = await stage();
    await mkdir(place.at("work/inner"));
    await symlink(place.folder, place.at("link"));
    await recordTrust({ stateRoot: place.home, folder: place.at("link"), items: [], ...ports });
    const book = readTrust(place.home);
    expect(listTrusted(place.home).folders.map(({ folder }) => folder)).toEqual([place.folder]);
    const states = ["work", "link", "work/inner", ".", "missing"].map((name) => book.of(place.at(name)).state);
    expect(states).toEqual(["trusted", "trusted", "none", "none", "none"]);
  });

  it("trust in a folder approves everything for one run with forRun, and records nothing", async () => {
    await using place = await stage();
    const trust = readTrust(place.home).of(place.folder, { forRun: true });
    expect([trust.state, trust.check(item("hook", "any", 1))]).toEqual(["run", "approved"]);
    expect(Object.keys(await place.tree())).toEqual(["work/README.md"]);
  });

  it("trust by the user's list of folders approves no programs, and relative names in it are ignored", async () => {
    await using place = await stage();
    const listed = readTrust(place.home).of(place.folder, { trustedFolders: [place.folder] });
    expect([listed.state, listed.check(item("hook", "a", 1))]).toEqual(["trusted", "new"]);
    expect(readTrust(place.home).of(process.cwd(), { trustedFolders: [".", "", ".."] }).state).toBe("none");
  });

  it("trust in a folder stays with the path when the folder is replaced, but not for items that changed", async () => {
    await using place = await stage();
    await recordTrust({ stateRoot: place.home, folder: place.folder, items: [item("hook", "a", 1)], ...ports });
    await rename(place.folder, place.at("away"));
    await mkdir(place.folder);
    const trust = readTrust(place.home).of(place.folder);
    expect([trust.state, trust.check(item("hook", "a", "evil"))]).toEqual(["trusted", "changed"]);
  });

  it("trust in a folder can be revoked, also for a folder that is gone", async () => {
    await using place = await stage();
    const request = { stateRoot: place.home, folder: place.folder, ...ports };
    await recordTrust({ ...request, items: [] });
    await rename(place.folder, place.at("away"));
    expect(await removeTrust(request)).toEqual({ found: true });
    expect(await removeTrust(request)).toEqual({ found: false });
    expect(listTrusted(place.home).folders).toEqual([]);
  });
});

describe("trust.json", () => {
  it("trust.json is readable for its owner alone", async () => {
    await using place = await stage();
    await recordTrust({ stateRoot: place.home, folder: place.folder, items: [], ...ports });
    expect((await stat(place.at("home/trust.json"))).mode & 0o777).toBe(0o600);
    expect(await readdir(place.home)).toEqual(["trust.json"]);
  });

  const good = (folder: string): string =>
    JSON.stringify({ version: 1, folders: [{ folder, trustedAt: "2026-01-01T00:00:00.000Z", items: [] }] });

  it.each([
    ["torn", (text: string) => text.slice(0, -5)],
    ["empty", () => ""],
    ["of another version", (text: string) => text.replace('"version":1', '"version":2')],
    ["of another shape", () => '{"version":1,"folders":{"__proto__":{}}}'],
    ["binary", () => Buffer.from([0xff, 0xfe, 0x00])],
    ["huge", (text: string) => text + " ".repeat(5 * 1024 * 1024)],
  ])("trust.json grants no trust when it is %s, causes a notice, and is kept on the next write", async (_, damage) => {
    await using place = await stage();
    await place.files({ "home/trust.json": damage(good(place.folder)) });
    await chmod(place.at("home/trust.json"), 0o600);
    const book = readTrust(place.home);
    expect(book.of(place.folder).state).toBe("none");
    expect(book.notices.map(({ message }) => message.includes(place.at("home/trust.json")))).toEqual([true]);

    const { keptAs } = await recordTrust({ stateRoot: place.home, folder: place.folder, items: [], ...ports });
    expect(keptAs).toMatch(/trust\.json\.damaged-/);
    expect((await stat(keptAs ?? "")).size).toBe(Buffer.byteLength(damage(good(place.folder))));
    expect(readTrust(place.home).of(place.folder).state).toBe("trusted");
  });

  it.each([0o620, 0o602, 0o666])("trust.json is ignored while others can write to it (mode %o)", async (mode) => {
    await using place = await stage();
    await place.files({ "home/trust.json": good(place.folder) });
    await chmod(place.at("home/trust.json"), mode);
    const book = readTrust(place.home);
    expect(book.of(place.folder).state).toBe("none");
    expect(book.notices[0]?.message).toContain("is writable by other users");
    await chmod(place.at("home/trust.json"), 0o600);
    expect(readTrust(place.home).of(place.folder).state).toBe("trusted");
  });

  it("trust.json grants no trust while a folder is in its place, and replaces that folder", async () => {
    await using place = await stage();
    await mkdir(place.at("home/trust.json"), { recursive: true });
    expect(readTrust(place.home).of(place.folder).state).toBe("none");
    await recordTrust({ stateRoot: place.home, folder: place.folder, items: [], ...ports });
    expect(readTrust(place.home).of(place.folder).state).toBe("trusted");
  });

  it("trust.json loses nothing when twenty processes record at once", async () => {
    await using place = await stage();
    const outfile = place.at("child.mjs");
    const entry = fileURLToPath(new URL("./trust-program.ts", import.meta.url));
    await build({ entryPoints: [entry], outfile, bundle: true, minify: true, platform: "node", format: "esm" });
    const names = Array.from({ length: 20 }, (_, index) => `folder-${index}`);
    for (const name of names) await mkdir(place.at(name));
    const run = promisify(execFile);
    await Promise.all(names.map((name) => run(process.execPath, [outfile, place.home, place.at(name), name])));
    const book = readTrust(place.home);
    expect(names.filter((name) => book.of(place.at(name)).check(item("hook", name, name)) !== "approved")).toEqual([]);
    expect(await readdir(place.home)).toEqual(["trust.json"]);
  });

  it("trust.json loses nothing when one process records forty times at once", async () => {
    await using place = await stage();
    const names = Array.from({ length: 40 }, (_, index) => `folder-${index}`);
    for (const name of names) await mkdir(place.at(name));
    await Promise.all(
      names.map((name) => recordTrust({ stateRoot: place.home, folder: place.at(name), items: [], ...ports })),
    );
    expect(listTrusted(place.home).folders.length).toBe(40);
  });

  it("trust.json can be changed after a process died with the lock or while taking it over", async () => {
    await using place = await stage();
    await mkdir(place.home);
    const dead = (token: string): string => JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), token });
    await writeFile(place.at("home/trust.json.lock"), dead("one"));
    await writeFile(place.at("home/trust.json.lock.after-one"), dead("two"));
    await Promise.all(
      ["work", "."].map((name) => recordTrust({ stateRoot: place.home, folder: place.at(name), items: [], ...ports })),
    );
    expect(listTrusted(place.home).folders.length).toBe(2);
    expect(await readdir(place.home)).toEqual(["trust.json"]);
  });

  it("trust.json costs less than a millisecond of processor time when it does not exist", async () => {
    await using place = await stage();
    readTrust(place.home);
    const looks = (): void => {
      for (let n = 0; n < 20; n++) readTrust(place.home).of(place.folder);
    };
    expect((await leastProcessorTime(looks)) / 20).toBeLessThan(1);
  });
});

describe("digestOf", () => {
  it("digestOf returns the digest of the canonical JSON", () => {
    expect(digestOf({ b: [1, null, "x"], a: { d: true, c: 0 } })).toBe(
      digestOf({ a: { c: 0, d: true }, b: [1, null, "x"] }),
    );
    expect(digestOf(["1"])).not.toBe(digestOf([1]));
    expect(digestOf(["ab", "c"])).not.toBe(digestOf(["a", "bc"]));
    expect(digestOf({})).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  });
});
