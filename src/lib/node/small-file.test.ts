import { execFileSync } from "node:child_process";
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../testing/temp-folder.ts";
import { readSmallFile, readStart, smallText } from "./small-file.ts";

describe("a small file", () => {
  it("a small file is read to its last byte, and refused with one byte more than allowed", async () => {
    await using folder = await tempFolder({ "a.txt": "é12345" });
    const path = folder.at("a.txt");
    expect(readSmallFile(path, { maxBytes: 7 })).toMatchObject({ kind: "text", text: "é12345", stat: { size: 7 } });
    expect(readSmallFile(path, { maxBytes: 6 })).toEqual({ kind: "refused", reason: "is larger than 0 KiB" });
    expect([smallText(path, 7), smallText(path, 6)]).toEqual(["é12345", undefined]);
    expect(readStart(path, { maxBytes: 4 })).toMatchObject({ kind: "read", bytes: Buffer.from("é12"), size: 7 });
  });

  it("a small file is missing for no file, for a folder, and for a path below a file", async () => {
    await using folder = await tempFolder({ "a.txt": "a" });
    mkdirSync(folder.at("folder"));
    for (const name of ["nothing", "folder", "a.txt/b", "nothing/b"]) {
      expect([name, readSmallFile(folder.at(name), { maxBytes: 10 })]).toEqual([name, { kind: "missing" }]);
      expect(smallText(folder.at(name), 10)).toBeUndefined();
    }
  });

  it("a small file behind a link is read only inside of the given folder", async () => {
    await using folder = await tempFolder({ "secret.txt": "s", "work/a.txt": "a" });
    const below = realpathSync(folder.at("work"));
    symlinkSync("a.txt", folder.at("work/inner"));
    symlinkSync("../secret.txt", folder.at("work/outer"));
    const read = (name: string) => readSmallFile(folder.at(`work/${name}`), { maxBytes: 10, below });
    expect(read("inner")).toMatchObject({ kind: "text", text: "a", realPath: `${below}/a.txt` });
    expect(read("outer")).toEqual({ kind: "refused", reason: `leads outside ${below}` });
  });

  it.runIf(process.platform !== "win32")(
    "a small file that is a pipe or a device is refused without waiting",
    async () => {
      await using folder = await tempFolder();
      execFileSync("mkfifo", [folder.at("pipe")]);
      for (const path of [folder.at("pipe"), "/dev/zero"]) {
        expect(readSmallFile(path, { maxBytes: 10 })).toEqual({ kind: "refused", reason: "is not a regular file" });
        expect(smallText(path, 10)).toBeUndefined();
      }
    },
  );

  it.runIf(process.platform === "linux")("a small file may have more content than its size reports", () => {
    expect(readSmallFile("/proc/self/status", { maxBytes: 64 * 1024 })).toMatchObject({
      kind: "text",
      text: expect.stringMatching(/^Name:[\s\S]*ctxt_switches:\t\d+\n$/),
    });
    expect(readSmallFile("/proc/self/status", { maxBytes: 100 })).toMatchObject({ kind: "refused" });
  });

  it("a small file loses its byte order mark, and is refused when it is not UTF-8", async () => {
    await using folder = await tempFolder({ "mark.txt": "\ufefftext" });
    writeFileSync(folder.at("bytes"), Buffer.from([0x61, 0xff]));
    expect(readSmallFile(folder.at("mark.txt"), { maxBytes: 10 })).toMatchObject({ text: "text" });
    expect(readSmallFile(folder.at("bytes"), { maxBytes: 10 })).toEqual({
      kind: "refused",
      reason: "is not UTF-8 text",
    });
    expect(smallText(folder.at("bytes"), 10)).toBe("a\ufffd");
  });
});
