// `npm run test:adversarial`: every starred case of the adversarial test plan, by the built program: as an ordinary user
// and as root, with the guards off (each attack must succeed), and against programs with one seeded weakness each (the
// case that watches it must turn red), all at the same time. Ends with a table. Arguments are ids of cases:
// `npm run test:adversarial -- D05`. `--user`, `--root`, `--control` and `--seeded` run only these parts.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { copyProgram, weaken } from "./weakened-program.mjs";

/** Attacks that each part plays at the same time. Most of them wait for processes. */
const LANES = 2;

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const started = performance.now();
const isRoot = process.getuid?.() === 0;
const user = isRoot ? ordinaryUser() : undefined;
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
const only = (name) => process.argv.includes(`--${name}`);
const all = !["user", "root", "control", "seeded"].some(only);
const base = workFolder();
const children = new Set();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => end(130));
process.once("uncaughtException", (error) => {
  console.error(error);
  end(1);
});

const program = join(base, "program.mjs");
const copy = join(base, "copy");
const { attacks, pending, weaknesses } = await prepare();
const rows = new Map(attacks.map(({ id, title }) => [id, { id, title }]));
const listed = wanted.length > 0 ? wanted : [...rows.keys()];
const problems = [];
/** Prints a problem at once: an interrupted run must not lose it. */
const report = (problem) => {
  problems.push(problem);
  console.log(problem);
};

const parts = {
  user: () => guarded("user", user ? { ...user, ...readableBy(user) } : {}),
  ...(isRoot && { root: () => guarded("root", {}) }),
  control,
  seeded,
};
await Promise.all(Object.entries(parts).map(([name, play]) => (all || only(name) ? play() : undefined)));
printTable();
end(problems.length > 0 ? 1 : 0);

/** The job of the real program: nothing may get through. */
async function guarded(column, as) {
  const job = { root: as.root ?? root, guards: "on", ids: listed, parallel: LANES };
  for await (const { id, breaches, milliseconds } of play(job, as)) {
    rows.get(id)[column] = breaches.length === 0 ? "held" : "BROKEN";
    rows.get(id).milliseconds = milliseconds;
    for (const { what } of breaches) report(`${id} as ${column}: ${what}`);
  }
  complain(column);
}

/** The same attacks where nothing guards: each that gets nothing would prove nothing. */
async function control() {
  const weakened = join(base, "weak-control");
  await weaken(
    copy,
    weakened,
    weaknesses.flatMap(({ control: is, changes }) => (is ? changes : [])),
  );
  for await (const { id, effects, breaches } of play(
    { root, weakened, guards: "off", ids: listed, parallel: LANES },
    {},
  )) {
    rows.get(id).control = effects > 0 ? "succeeds" : "FAILS";
    if (effects === 0) report(`${id} control: the attack gets nothing. ${breaches.map(({ what }) => what).join("; ")}`);
  }
  complain("control");
}

/** Programs with one weakness each, and the case that must notice it. */
async function seeded() {
  const meant = weaknesses.filter(({ watcher }) => listed.includes(watcher));
  for (const weakness of meant) rows.get(weakness.watcher).seeded = 0;
  const waiting = [...meant];
  const work = async () => {
    for (let weakness = waiting.shift(); weakness; weakness = waiting.shift()) await seed(weakness);
  };
  await Promise.all(Array.from({ length: LANES }, work));
  complain(
    "seeded",
    meant.map(({ watcher }) => watcher),
  );
}

async function seed(weakness) {
  const { id, watcher } = weakness;
  const folder = join(base, `weak-${id}`);
  try {
    await weaken(copy, folder, weakness.changes);
  } catch (error) {
    report(`seeded ${id}: cannot be built: ${error.message}`);
    return;
  }
  for await (const { breaches } of play({ root: folder, guards: "on", ids: [watcher], parallel: 1 }, {})) {
    const [seen] = breaches.filter(({ kind }) => kind !== "failure");
    if (seen) rows.get(watcher).seeded++;
    else report(`seeded ${id}: ${watcher} does not notice it. ${breaches.map(({ what }) => what).join("; ")}`);
    weakness.noticed = seen?.what ?? "not noticed";
  }
  if (weakness.noticed === undefined) report(`seeded ${id}: ${watcher} did not end`);
  rmSync(folder, { recursive: true, force: true });
}

/** Results as they come. */
async function* play(job, as) {
  const folder = mkdtempSync(join(base, "run-"));
  if (as.uid !== undefined) chownSync(folder, as.uid, as.gid);
  const { node = process.execPath, path = process.env.PATH, uid, gid } = as;
  const { lines, code, stderr } = await run(node, [as.program ?? program, JSON.stringify({ ...job, base: folder })], {
    cwd: folder,
    env: environment({ HOME: folder, PATH: path }),
    ...(uid !== undefined && { uid, gid }),
  });
  for (const line of lines) yield JSON.parse(line);
  if (code !== 0) report(`a run ended with ${code}: ${stderr.slice(-1000)}`);
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

function run(command, args, options) {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      children.delete(child);
      resolve({ code, stderr, lines: stdout.split("\n").filter((line) => line.startsWith("{")) });
    });
  });
}

/** What the person who runs this has configured must not reach it. */
function environment(more) {
  return { PATH: process.env.PATH, HOME: homedir(), LANG: "C.UTF-8", ...more };
}

/** Builds the real program and the attacks. */
async function prepare() {
  const env = { ...process.env, TROUPE_SKIP_TYPES: "1" };
  const built = spawnSync(process.execPath, [join(root, "scripts", "build.mjs")], { cwd: root, env, stdio: "inherit" });
  if (built.status !== 0) end(1);
  copyProgram(root, copy);
  const options = {
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    loader: { ".md": "text" },
    external: ["esbuild"],
    logLevel: "warning",
  };
  const from = (name) => join(root, "test", "adversarial", name);
  await build({ ...options, entryPoints: [from("attack-program.ts")], outfile: program });
  await build({ ...options, entryPoints: [from("attacks.ts")], outfile: join(base, "attacks.mjs") });
  await build({ ...options, entryPoints: [from("weaknesses.ts")], outfile: join(base, "weaknesses.mjs") });
  const list = await import(join(base, "attacks.mjs"));
  return { ...list, ...(await import(join(base, "weaknesses.mjs"))) };
}

/**
 * Outside the temp folders, which the sandbox hides anyway, and outside the checkout, whose repository the attacks must
 * not take for theirs. The packages must be found from there.
 */
function workFolder() {
  const parent = isRoot ? "/var/cache" : join(homedir(), ".cache");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "troupe-adversarial-"));
  chmodSync(folder, 0o755);
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** A checkout in a folder of root's own is copied, with the node that runs this, to where the user can read it. */
function readableBy({ uid, gid }) {
  const look = `for (const path of ${JSON.stringify([join(root, "bin"), join(root, "node_modules")])}) require("fs").readdirSync(path)`;
  if (spawnSync(process.execPath, ["-e", look], { uid, gid, cwd: "/" }).status === 0) return {};
  const copy = join(base, "checkout");
  const bin = join(base, "node-bin");
  for (const folder of [copy, bin]) mkdirSync(folder);
  for (const name of ["bin", "dist", "src", "package.json", "node_modules"])
    spawnSync("cp", ["-a", "--reflink=auto", join(root, name), copy], { stdio: "inherit" });
  spawnSync("chmod", ["-R", "a+rX", copy]);
  spawnSync("cp", [process.execPath, join(bin, "node")]);
  cpSync(program, join(copy, "program.mjs"));
  return { root: copy, program: join(copy, "program.mjs"), node: join(bin, "node"), path: `${bin}:/usr/bin:/bin` };
}

/** Nobody in particular, who owns nothing. */
function ordinaryUser() {
  return { uid: 65534, gid: 65534 };
}

/** `expected`: rows that must have a result. */
function complain(column, expected = listed) {
  for (const id of expected) if (rows.get(id)?.[column] === undefined) report(`${id} ${column}: no result`);
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(`${column}: ${expected.length} cases, ${problems.length} problems so far (${seconds} s)`);
}

function printTable() {
  const shown = listed.map((id) => rows.get(id));
  const cell = (value) => String(value ?? "–");
  console.log(
    `\n${"case".padEnd(12)}${"user".padEnd(8)}${"root".padEnd(8)}${"control".padEnd(10)}${"seeded".padEnd(8)}${"ms".padEnd(7)}what`,
  );
  for (const { id, user: asUser, root: asRoot, control: off, seeded: found, milliseconds, title } of shown)
    console.log(
      `${id.padEnd(12)}${cell(asUser).padEnd(8)}${cell(asRoot).padEnd(8)}${cell(off).padEnd(10)}${cell(found).padEnd(8)}${cell(milliseconds).padEnd(7)}${title}`,
    );
  for (const { id, title, reason } of pending) console.log(`${id.padEnd(12)}skipped: ${reason}. ${title}`);
  const noticed = weaknesses.filter(({ noticed: by }) => by !== undefined);
  if (noticed.length > 0) console.log("\nseeded weaknesses:");
  for (const { id, watcher, noticed: by } of noticed)
    console.log(`  ${id.padEnd(28)}${watcher.padEnd(12)}${by.slice(0, 110)}`);
  if (!isRoot) console.log("\nThis is not root, so the cases ran as an ordinary user only.");
  for (const problem of problems) console.log(`\nPROBLEM ${problem}`);
  console.log(`\n${problems.length} problems in ${Math.round((performance.now() - started) / 1000)} s`);
}

function end(code) {
  for (const child of children) child.kill("SIGTERM");
  rmSync(base, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code);
}
