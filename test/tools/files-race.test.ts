import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { PathError } from "../../src/lib/node/paths.ts";
import { openForWriting } from "../../src/lib/node/paths-write.ts";

const WRITES = process.env.TROUPE_SLOW === undefined ? 400 : 40_000;

/** Real files without waiting for the platter: this is about where a write lands, not about power cuts. */
const disk = { ...nodeDisk, sync: async () => {}, syncDirectory: async () => {} };

/**
 * Swaps, without pause, a folder for a link to the outside and a file for a link to a file outside. Writes that land
 * in between may take a name it needs; then it plants everything anew.
 */
const SWAPPER = `
  const fs = require("node:fs");
  const [root, outside] = process.argv.slice(1);
  process.chdir(root);
  const plant = () => {
    for (const name of ["folder", "folder-link", "file.txt", "file-link", "aside"]) {
      fs.rmSync(name, { recursive: true, force: true });
    }
    fs.mkdirSync("folder");
    for (const file of ["file.txt", "folder/data.txt"]) fs.writeFileSync(file, "inside");
    fs.symlinkSync(outside, "folder-link");
    fs.symlinkSync(outside + "/data.txt", "file-link");
  };
  let swaps = 0;
  const end = Date.now() + 600000;
  process.stdin.resume().on("end", () => { fs.writeSync(1, String(swaps)); process.exit(); });
  const swap = (real, link) => {
    fs.renameSync(real, "aside"); fs.renameSync(link, real); fs.renameSync(real, link); fs.renameSync("aside", real);
    if (!fs.lstatSync(link).isSymbolicLink()) throw new Error("the link was replaced");
    swaps++;
  };
  (function round() {
    if (Date.now() > end) process.exit(1);
    try {
      for (let n = 0; n < 20; n++) { swap("folder", "folder-link"); swap("file.txt", "file-link"); }
    } catch {
      try { plant(); } catch {}
    }
    setImmediate(round);
  })();
`;

test("while folder and link are swapped all the time, nothing outside is ever written", {
  timeout: 600_000,
}, async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "troupe-write-race-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const root = join(base, "work");
  const outside = join(base, "outside");
  for (const folder of [root, outside]) mkdirSync(folder);
  writeFileSync(join(outside, "data.txt"), "OUTSIDE");
  const swapper = spawn(process.execPath, ["-e", SWAPPER, root, outside], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void swapper.kill("SIGKILL"));
  let swaps = "";
  swapper.stdout.setEncoding("utf8").on("data", (text: string) => {
    swaps += text;
  });
  const ended = new Promise((resolve) => swapper.once("close", resolve));

  const seen = { written: 0, refused: 0, naive: 0, outside: 0 };
  const targets = ["folder/data.txt", "file.txt", "folder/new/deep.txt"];
  for (let round = 0; round < WRITES; round++) {
    const path = join(root, targets[round % targets.length] ?? "");
    if (naiveReadIsOutside(path)) seen.naive++;
    seen[await write(path, root, `write ${round}`)]++;
    if (round % 100 === 0 && !isUntouched(outside)) seen.outside++;
  }
  swapper.stdin.end();
  await ended;

  process.stdout.write(`write race: ${JSON.stringify({ writes: WRITES, swaps: Number(swaps), ...seen })}\n`);
  expect(seen.outside).toBe(0);
  expect(isUntouched(outside)).toBe(true);
  expect(seen.written + seen.refused).toBe(WRITES);
  // Without these the test would prove nothing: there were swaps, and they were met.
  expect(Number(swaps)).toBeGreaterThan(WRITES);
  expect(seen.written).toBeGreaterThan(0);
  expect(seen.refused).toBeGreaterThan(WRITES / 20);
  expect(seen.naive).toBeGreaterThan(0);
});

async function write(path: string, root: string, content: string): Promise<"written" | "refused"> {
  try {
    const target = await openForWriting(path, { cwd: root, roots: [root], disk });
    try {
      await target.write(Buffer.from(content));
      return "written";
    } finally {
      await target.close();
    }
  } catch (error) {
    if (error instanceof PathError) return "refused";
    throw error;
  }
}

function isUntouched(outside: string): boolean {
  return readdirSync(outside).join() === "data.txt" && readFileSync(join(outside, "data.txt"), "utf8") === "OUTSIDE";
}

function naiveReadIsOutside(path: string): boolean {
  try {
    return readFileSync(path, "utf8") === "OUTSIDE";
  } catch {
    return false;
  }
}
