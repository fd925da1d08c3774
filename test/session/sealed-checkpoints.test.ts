import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Checkpoints } from "../../src/checkpoints/checkpoints.ts";
import { undo } from "../../src/checkpoints/undo.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { keyedSeal } from "../../src/lib/node/seal.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const PASSWORD = "correct horse battery staple";

function checkpointsAt(directory: string, key?: string): Checkpoints {
  const seal = key && { seal: () => keyedSeal({ path: key, disk: nodeDisk }) };
  return new Checkpoints({ directory, disk: nodeDisk, stamp: fauxStamp(), ...seal });
}

const everythingIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");

it("stored files are sealed, and are restored byte for byte, also by a later process", async () => {
  await using folder = await tempFolder();
  const [session, work, key] = [folder.at("session"), folder.at("work"), folder.at("home/undo.key")];
  const [one, two] = [join(work, "one.env"), join(work, "two.bin")];
  const binary = Buffer.from([0, 255, 128, 10, 0]);
  mkdirSync(work);
  writeFileSync(one, PASSWORD);
  writeFileSync(two, binary);
  const tree = await checkpointsAt(session, key).storeTree([work], "call_1");
  rmSync(two);
  writeFileSync(one, "");
  await tree.settle();
  expect(everythingIn(session)).not.toContain(PASSWORD);
  expect(statSync(key).mode & 0o777).toBe(0o600);
  await undo({ kind: "last" }, { checkpoints: checkpointsAt(session, key), disk: nodeDisk, force: false });
  expect(readFileSync(one, "utf8")).toBe(PASSWORD);
  expect(readFileSync(two)).toEqual(binary);
});

it("checkpoints read content stored before sealing existed, and report content sealed with another key", async () => {
  await using folder = await tempFolder();
  const [session, key] = [folder.at("session"), folder.at("home/undo.key")];
  const old = await checkpointsAt(session).storeObject(Buffer.from("old"));
  const sealed = await checkpointsAt(session, key).storeObject(Buffer.from("new"));
  expect(String(await checkpointsAt(session, key).object(old))).toBe("old");
  expect(String(await checkpointsAt(session, key).object(sealed))).toBe("new");
  rmSync(key);
  await expect(checkpointsAt(session, key).object(sealed)).rejects.toThrow("is missing or damaged");
});

it("concurrent creators of the key use the same one, and a damaged key is not overwritten", async () => {
  await using folder = await tempFolder();
  const path = folder.at("home/undo.key");
  const seals = await Promise.all(Array.from({ length: 20 }, () => keyedSeal({ path, disk: nodeDisk })));
  const closed = seals.map((seal) => seal.close(Buffer.from("same")));
  expect(closed.map((bytes) => String(seals[0]?.open(bytes)))).toEqual(Array(20).fill("same"));
  expect(readdirSync(folder.at("home"))).toEqual(["undo.key"]);
  writeFileSync(path, "short");
  await expect(keyedSeal({ path, disk: nodeDisk })).rejects.toThrow("is damaged: it has 5 bytes, not 32");
});
