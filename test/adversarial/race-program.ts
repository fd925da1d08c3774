/** Writes while another process swaps folder and link: `node race.mjs <folder> on|off <writes>`. Prints what came of it. */
export const raceProgram = `
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { openForWriting } from "./lib/node/paths-write.ts";

const [folder, guards, writes] = process.argv.slice(2);
const root = join(folder, "race");
const outside = join(folder, "race-outside");
// An attempt without luck is repeated in the same folder.
for (const path of [root, outside]) fs.rmSync(path, { recursive: true, force: true });
for (const path of [root, outside, join(root, "folder")]) fs.mkdirSync(path);
const SWAPPER = \`
  const fs = require("node:fs");
  const [root, outside] = process.argv.slice(1);
  process.chdir(root);
  fs.symlinkSync(outside, "link");
  let swaps = 0;
  // The writer may have made a folder meanwhile, where there was none for a moment.
  const put = (from, to) => {
    for (;;) {
      try { return fs.renameSync(from, to); } catch (error) { if (error.code === "ENOENT") throw error; }
      try { fs.rmSync(to, { recursive: true, force: true }); } catch {}
    }
  };
  const end = Date.now() + 120000;
  process.stdin.resume().on("end", () => { try { fs.writeSync(1, String(swaps)); } catch {} process.exit(); });
  (function round() {
    if (Date.now() > end) process.exit(1);
    for (let n = 0; n < 50; n++) {
      put("folder", "aside"); put("link", "folder"); put("folder", "link"); put("aside", "folder");
      swaps += 2;
    }
    setImmediate(round);
  })();
\`;
const swapper = spawn(process.execPath, ["-e", SWAPPER, root, outside], { stdio: ["pipe", "pipe", "inherit"] });
let swaps = "";
swapper.stdout.setEncoding("utf8").on("data", (text) => { swaps += text; });
const ended = new Promise((resolve) => swapper.once("close", resolve));
while (!fs.existsSync(join(root, "link"))) await new Promise((resolve) => setTimeout(resolve, 5));

const told = { written: 0, refused: 0, escaped: 0 };
// Durability is another test's business: without it forty thousand writes take seconds, not minutes.
const disk = await quickDisk();
const escaped = () => fs.readdirSync(outside).length;
const started = Date.now();
let round = 0;
// Several at a time, so that the disk's threads are busy; the first that lands outside decides.
await Promise.all(Array.from({ length: 6 }, async (_, writer) => {
  // A busy machine gets fewer writes instead of none that are counted.
  for (; round < Number(writes) && Date.now() - started < 45000; ) {
    round++;
    const name = join(root, "folder", "file-" + writer);
    try {
      if (guards === "on") await guarded(name);
      else naive(name);
      told.written++;
    } catch {
      told.refused++;
    }
    if (round % 200 === 0 && escaped() > 0) return;
  }
}));
swapper.stdin.end();
await ended;
told.escaped = escaped();
console.log(JSON.stringify({ ...told, rounds: round, swaps: Number(swaps), milliseconds: Date.now() - started }));

async function guarded(name) {
  const place = await openForWriting(name, { cwd: root, roots: [root], disk });
  try { await place.write(Buffer.from("x")); } finally { await place.close(); }
}

function naive(name) {
  const real = fs.realpathSync(join(name, ".."));
  if (!real.startsWith(root + "/")) throw new Error("outside");
  fs.writeFileSync(name, "x");
}

async function quickDisk() {
  const { nodeDisk } = await import("./lib/node/disk.ts");
  return new Proxy(nodeDisk, {
    get: (target, key) => (/sync/i.test(String(key)) ? async () => undefined : Reflect.get(target, key)),
  });
}
`;
