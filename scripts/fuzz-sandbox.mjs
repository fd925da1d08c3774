// `npm run test:fuzz`: attacks the sandbox in random workspaces; see test/fuzz. Arguments:
//   --count N       cases (5000)
//   --seed S        the first seed; without it, one of the clock's
//   --without NAME  takes one protection out of the sandbox, which the cases must notice; `--without all` for each in turn
//   --seconds N     ends after this time (1800)
//   --workers N     processes (one per core)
//   --user          every case as an ordinary user
//   --refused       prints why the sandbox refused to run a case
//   --report PATH   file for the failed cases (in the temporary folder, with the seed in its name)
// A failed case is printed when it fails, with the command that repeats it. The report gets one line of JSON for each: seed,
// problems, command, the workspace before the attack, the attack, the notes of the clean-up and the end of the output.
// As root, every fourth case is played as an ordinary user.
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "5000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    without: { type: "string" },
    seconds: { type: "string", default: "1800" },
    workers: { type: "string", default: String(availableParallelism()) },
    user: { type: "boolean", default: false },
    refused: { type: "boolean", default: false },
    report: { type: "string" },
  },
});
const [count, seed, seconds, workers] = [values.count, values.seed, values.seconds, values.workers].map(Number);
const report = values.report ?? join(tmpdir(), `troupe-fuzz-${seed}.jsonl`);
const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;
const base = workFolder();
const children = new Set();
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void end(130));
process.once("uncaughtException", (error) => {
  console.error(error);
  void end(1);
});

await build({
  entryPoints: [join(root, "test/fuzz/build.ts"), join(root, "test/fuzz/without.ts")],
  outdir: base,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  external: ["esbuild"],
  logLevel: "warning",
});
spawnSync("ln", ["-s", join(root, "node_modules"), join(base, "node_modules")]);
const { buildProgram } = await import(join(base, "build.mjs"));
const { WITHOUT } = await import(join(base, "without.mjs"));

if (values.without === "all") await end((await each()) ? 0 : 1);
const result = await run(values.without, count);
if (values.refused) for (const line of result.refused) console.log(`REFUSED ${line}`);
if (result.refused.length > 0) console.log(`${result.refused.length} cases were refused by the sandbox`);
const noted = values.without === undefined ? "" : `, without ${values.without}`;
console.log(`${result.passed} passed, ${result.failed} failed (seed ${seed}, ${result.seconds} s${noted})`);
if (result.failed > 0) console.log(`failed cases with all details: ${report}`);
await end(result.failed > 0 || result.passed === 0 ? 1 : 0);

/** Every protection must be missed. */
async function each() {
  let noticed = true;
  for (const name of Object.keys(WITHOUT)) {
    const { first, played, failures } = await run(name, count, { untilFailure: true });
    const how = failures[0]
      ?.split("\n")[0]
      .replaceAll(/\/\S*\/case-\d+/g, "")
      .slice(0, 110);
    console.log(
      `${name.padEnd(28)} ${first === undefined ? `NOT NOTICED in ${played}` : `after ${played} cases: ${how}`}`,
    );
    if (first === undefined) noticed = false;
  }
  return noticed;
}

async function run(without, cases, { untilFailure = false } = {}) {
  const program = join(base, `program-${without ?? "real"}.mjs`);
  await buildProgram(root, program, without);
  const started = performance.now();
  const told = { passed: 0, failed: 0, refused: [], played: 0, first: undefined, failures: [], seconds: 0 };
  const lanes = Array.from({ length: workers }, (_, lane) => ({
    lane,
    asUser: values.user || (isRoot && lane % 4 === 3),
  }));
  // With fewer than four workers an ordinary user gets a lane of its own, with a quarter of the cases.
  if (isRoot && !values.user && workers < 4) lanes.push({ lane: workers, asUser: true });
  const step = lanes.length;
  const share = (lane) => Math.floor((cases - lane + step - 1) / step);
  await Promise.all(
    lanes.map(({ lane, asUser }) =>
      play(program, { from: seed + lane, step, count: share(lane), asUser }, told, untilFailure),
    ),
  );
  told.seconds = Math.round((performance.now() - started) / 1000);
  return told;
}

function play(program, { from, step, count: share, asUser }, told, untilFailure) {
  const home = mkdtempSync(join(base, "home-"));
  if (asUser && isRoot) chownSync(home, NOBODY, NOBODY);
  const args = [program, ...[from, step, share, seconds].map(String)];
  const node = asUser && isRoot ? nodeFor() : process.execPath;
  const child = spawn(node, args, {
    cwd: "/",
    env: { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8" },
    stdio: ["ignore", "pipe", "inherit"],
    ...(asUser && isRoot && { uid: NOBODY, gid: NOBODY }),
  });
  children.add(child);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { seed: one, problems, refused, details } = JSON.parse(line);
    told.played++;
    if (refused !== undefined) told.refused.push(`seed ${one}: ${refused}`);
    if (problems.length === 0) {
      told.passed++;
      return;
    }
    told.failed++;
    told.first ??= one;
    const again = `npm run test:fuzz -- --seed ${one} --count 1 --workers 1${asUser && isRoot ? " --user" : ""}`;
    told.failures.push(problems.join("\n  "));
    if (!untilFailure) {
      console.log(`FAILED seed ${one}: ${problems.join("\n  ")}\n  again: ${again}`);
      appendFileSync(report, `${JSON.stringify({ seed: one, problems, again, refused, details })}\n`, { mode: 0o600 });
    }
    if (untilFailure) for (const other of children) other.kill("SIGTERM");
  });
  return new Promise((resolve) => {
    child.once("close", () => {
      children.delete(child);
      resolve();
    });
  });
}

/** A node that an ordinary user may run, if this one lies in a folder of root's. */
function nodeFor() {
  const test = spawnSync(process.execPath, ["-e", ""], { uid: NOBODY, gid: NOBODY, cwd: "/" });
  if (test.status === 0) return process.execPath;
  const copy = join(base, "node");
  spawnSync("cp", [process.execPath, copy]);
  chmodSync(copy, 0o755);
  return copy;
}

/** Where an ordinary user can read, outside the temporary folders. */
function workFolder() {
  const parent = isRoot ? "/var/cache" : join(homedir(), ".cache");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "troupe-fuzz-"));
  chmodSync(folder, 0o755);
  return folder;
}

async function end(code) {
  const ended = [...children].map((child) => new Promise((resolve) => child.once("close", resolve)));
  for (const child of children) child.kill("SIGTERM");
  await Promise.all(ended);
  rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code);
}
