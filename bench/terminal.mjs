// Times of the interactive terminal on a real pseudo terminal: first frame after exec beside `node -e 0`, the session's
// readiness, and key to paint. Needs the build and the optional package @lydell/node-pty. node bench/terminal.mjs [--runs 15]
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const pty = createRequire(import.meta.url)("@lydell/node-pty");
const bin = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const at = process.argv.indexOf("--runs");
const runs = at < 0 ? 15 : Number(process.argv[at + 1]);
const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
const env = {
  PATH: process.env.PATH,
  TERM: "xterm-256color",
  HOME: folder,
  TROUPE_HOME: join(folder, "home"),
  TROUPE_NO_DISCOVERY: "1",
};

const start = (args) => pty.spawn(process.execPath, args, { cols: 100, rows: 30, cwd: folder, env });

/** Until the output contains this text. */
function until(child, text, began) {
  return new Promise((resolve) => {
    let seen = "";
    const listener = child.onData((data) => {
      seen += data;
      if (!seen.includes(text)) return;
      listener.dispose();
      resolve(performance.now() - began);
    });
  });
}

const ended = (child) => new Promise((resolve) => child.onExit(resolve));

async function bare() {
  const began = performance.now();
  await ended(start(["-e", "0"]));
  return performance.now() - began;
}

async function terminal() {
  const began = performance.now();
  const child = start([bin]);
  const frame = until(child, "›", began);
  const ready = until(child, "interactive", began);
  const times = { frame: await frame, ready: await ready };
  await new Promise((resolve) => setTimeout(resolve, 300));
  const keys = [];
  for (const key of "abcdefghijklmnopqrst") {
    const pressed = performance.now();
    const painted = until(child, key, pressed);
    child.write(key);
    keys.push(await painted);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const exit = ended(child);
  child.write("\u0003");
  setTimeout(() => child.write("\u0003"), 50);
  setTimeout(() => child.write("\u0003"), 150);
  await Promise.race([exit, new Promise((resolve) => setTimeout(resolve, 5_000))]);
  child.kill("SIGKILL");
  return { ...times, keys };
}

const sorted = (values) => [...values].sort((one, other) => one - other);
const quantile = (values, part) => sorted(values)[Math.min(values.length - 1, Math.floor(values.length * part))];
const line = (name, values) =>
  console.log(
    `${name.padEnd(28)} min ${quantile(values, 0).toFixed(0)} ms, median ${quantile(values, 0.5).toFixed(0)} ms, p99 ${quantile(values, 0.99).toFixed(0)} ms`,
  );

const seen = { bare: [], frame: [], ready: [], keys: [] };
for (let run = 0; run < runs; run++) {
  seen.bare.push(await bare());
  const { frame, ready, keys } = await terminal();
  seen.frame.push(frame);
  seen.ready.push(ready);
  seen.keys.push(...keys);
}
line("node -e 0", seen.bare);
line("first frame", seen.frame);
line("session open", seen.ready);
line("key to paint", seen.keys);
rmSync(folder, { recursive: true, force: true });
process.exit(0);
