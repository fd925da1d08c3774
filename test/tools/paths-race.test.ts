import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { openForReading, PathError } from "../../src/lib/node/paths.ts";
import { grep } from "../../src/tools/files/grep.ts";
import { ToolError } from "../../src/tools/tool-error.ts";
import { contentOf, contextFor } from "./workspace.ts";

const READS = process.env.TROUPE_SLOW === undefined ? 1500 : 40_000;

/** Swaps, without pause, a folder for a link to the outside and a file for a link to a file outside. */
const SWAPPER = `
  const fs = require("node:fs");
  const [root, outside] = process.argv.slice(1);
  process.chdir(root);
  fs.symlinkSync(outside, "folder-link");
  fs.symlinkSync(outside + "/data.txt", "file-link");
  let swaps = 0;
  const end = Date.now() + 300000;
  process.stdin.resume().on("end", () => { fs.writeSync(1, String(swaps)); process.exit(); });
  const swap = (real, link) => {
    fs.renameSync(real, "aside"); fs.renameSync(link, real); fs.renameSync(real, link); fs.renameSync("aside", real);
  };
  (function round() {
    if (Date.now() > end) process.exit(1);
    for (let n = 0; n < 50; n++) { swap("folder", "folder-link"); swap("file.txt", "file-link"); swaps += 2; }
    setImmediate(round);
  })();
`;

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "troupe-race-")));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test("while folder and link are swapped all the time, nothing outside is ever read", { timeout: 300_000 }, async () => {
  const root = join(base, "work");
  const outside = join(base, "outside");
  for (const folder of [root, outside, join(root, "folder")]) mkdirSync(folder);
  for (const file of [join(root, "file.txt"), join(root, "folder", "data.txt")]) writeFileSync(file, "inside");
  writeFileSync(join(outside, "data.txt"), "OUTSIDE");
  const swapper = spawn(process.execPath, ["-e", SWAPPER, root, outside], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void swapper.kill("SIGKILL"));
  let swaps = "";
  swapper.stdout.setEncoding("utf8").on("data", (text: string) => {
    swaps += text;
  });
  const ended = new Promise((resolve) => swapper.once("close", resolve));

  const seen = { inside: 0, OUTSIDE: 0, refused: 0, naive: 0 };
  for (let round = 0; round < READS; round++) {
    const path = join(root, round % 2 === 0 ? "folder/data.txt" : "file.txt");
    if (naiveReadIsOutside(path)) seen.naive++;
    const content = await read(path, root);
    if (content === "inside" || content === "OUTSIDE" || content === "refused") seen[content]++;
    else throw new Error(`unexpected content: ${content}`);
    if (round % 100 === 0) expect(await searched(path, root)).not.toContain("OUTSIDE");
  }
  swapper.stdin.end();
  await ended;

  expect(seen.OUTSIDE).toBe(0);
  expect(seen.inside + seen.refused).toBe(READS);
  // Without these the test would prove nothing: there were swaps, and they were met.
  expect(Number(swaps)).toBeGreaterThan(READS / 10);
  expect(seen.inside).toBeGreaterThan(0);
  expect(seen.refused).toBeGreaterThan(0);
  expect(seen.naive).toBeGreaterThan(0);
});

async function read(path: string, root: string): Promise<string> {
  try {
    const opened = await openForReading(path, { cwd: root, roots: [root] });
    try {
      return await opened.handle.readFile("utf8");
    } finally {
      await opened.handle.close();
    }
  } catch (error) {
    if (error instanceof PathError) return "refused";
    throw error;
  }
}

/** Searching the folder, or the file, holds to the same rule as reading it. */
async function searched(path: string, root: string): Promise<string> {
  const place = path.replace("/data.txt", "");
  const input = { pattern: "side", "-i": true, output_mode: "content", path: place };
  try {
    return await contentOf(grep, input, contextFor(root));
  } catch (error) {
    if (error instanceof ToolError) return "refused";
    throw error;
  }
}

/** The same read without the path module: shows that the outside could be reached at that moment. */
function naiveReadIsOutside(path: string): boolean {
  try {
    return readFileSync(path, "utf8") === "OUTSIDE";
  } catch {
    return false;
  }
}
