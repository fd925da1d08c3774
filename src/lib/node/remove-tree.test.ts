import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempFolder } from "../../testing/temp-folder.ts";
import { removeTree } from "./remove-tree.ts";

describe("removing a folder", () => {
  it("removing a folder removes everything in it and never what a link leads to", async () => {
    await using folder = await tempFolder({ "outside/a.txt": "stays", "doomed/b/c.txt": "goes" });
    symlinkSync(folder.at("outside"), folder.at("doomed/link"));
    symlinkSync(folder.at("outside/a.txt"), folder.at("doomed/b/link"));
    symlinkSync(folder.at("nowhere"), folder.at("doomed/dangling"));
    await removeTree(folder.at("doomed"));
    expect(readdirSync(folder.path)).toEqual(["outside"]);
    expect(readFileSync(folder.at("outside/a.txt"), "utf8")).toBe("stays");
  });

  it("removing a folder also removes a file or a link itself, and ignores a missing path", async () => {
    await using folder = await tempFolder({ "outside/a.txt": "stays", "file.txt": "goes" });
    symlinkSync(folder.at("outside"), folder.at("link"));
    for (const name of ["file.txt", "link", "nothing", "outside/a.txt/below"]) await removeTree(folder.at(name));
    expect(readdirSync(folder.path)).toEqual(["outside"]);
    expect(readdirSync(folder.at("outside"))).toEqual(["a.txt"]);
  });

  it("removing a folder works for more levels than open descriptors are allowed", async () => {
    await using folder = await tempFolder();
    let at = folder.at("doomed");
    for (let level = 0; level < 400; level++) at = join(at, "a");
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, "file"), "");
    await removeTree(folder.at("doomed"));
    expect(existsSync(folder.at("doomed"))).toBe(false);
  });

  it("removing a folder removes nothing outside while a folder in it is swapped for a link all the time", {
    timeout: 60_000,
  }, async () => {
    await using folder = await tempFolder({ "outside/a.txt": "stays", "outside/b.txt": "stays" });
    const swapper = spawn(process.execPath, ["-e", SWAPPER, folder.path], { stdio: ["ignore", "ignore", "inherit"] });
    const ended = once(swapper, "exit");
    onTestFinished(() => void swapper.kill("SIGKILL"));
    const end = Date.now() + 3_000;
    let rounds = 0;
    for (; Date.now() < end && rounds < 3_000; rounds++) {
      await mkdir(folder.at("doomed/real"), { recursive: true }).catch(() => undefined);
      await removeTree(folder.at("doomed")).catch(() => undefined); // it may be filled faster than it is emptied
      if (readdirSync(folder.at("outside")).length < 2) break;
    }
    // Nothing may be swapped any more when the folder of the test is removed.
    swapper.kill("SIGKILL");
    await ended;
    expect(rounds).toBeGreaterThan(0);
    expect(readdirSync(folder.at("outside"))).toEqual(["a.txt", "b.txt"]);
  });
});

/** As a command would that still has the folder mounted. */
const SWAPPER = `
  const fs = require("node:fs");
  const root = process.argv[1];
  const attempt = (work) => { try { work(); } catch {} };
  for (const end = Date.now() + 30000; Date.now() < end; ) {
    attempt(() => fs.mkdirSync(root + "/doomed/real"));
    attempt(() => fs.writeFileSync(root + "/doomed/real/a.txt", ""));
    attempt(() => fs.renameSync(root + "/doomed/real", root + "/aside"));
    attempt(() => fs.symlinkSync(root + "/outside", root + "/doomed/real"));
    attempt(() => fs.unlinkSync(root + "/doomed/real"));
    attempt(() => fs.renameSync(root + "/aside", root + "/doomed/real"));
  }
`;
