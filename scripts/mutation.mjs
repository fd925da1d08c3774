// `npm run test:mutation`: applies each defect of test/mutation/defects.ts to a copy of the tree, one at a time, and runs
// the test that must fail. First runs every named test without a defect; each must pass. Exits with 1 unless every defect
// is caught.
//   --only <id|file>   only these defects (repeatable)
//   --jobs <n>         runs at the same time (default: the number of cores)
//   --list             print the defects and exit
//   --from <file>      take the defects from this file instead
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { cleanEnvironment } from "./clean-environment.mjs";

const RUN_LIMIT_MS = 600_000;
const CONTROL_LIMIT_MS = 3_600_000;
/** Failures of the tooling: the defect does not compile, so no test has seen it. */
const NOT_A_VERDICT = /^(SyntaxError|ReferenceError|RolldownError)\b|Failed to (load|parse|resolve)|Test timed out in/;

const root = fileURLToPath(new URL("..", import.meta.url));
const started = performance.now();
const { values: options } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [] },
    jobs: { type: "string", default: String(availableParallelism()) },
    list: { type: "boolean", default: false },
    from: { type: "string", default: "test/mutation/defects.ts" },
  },
});
const jobs = Number(options.jobs);
if (!Number.isInteger(jobs) || jobs < 1) fail("--jobs takes a whole number of at least 1.");

const defects = (await listed()).filter(
  ({ id, file }) => options.only.length === 0 || options.only.includes(id) || options.only.includes(file),
);
if (defects.length === 0) fail(`No defect matches --only ${options.only.join(" ")}. Run with --list to see all.`);
if (options.list) {
  for (const { id, file, why } of defects) console.log(`${id.padEnd(36)}${file.padEnd(44)}${why}`);
  process.exit(0);
}

const scratch = mkdtempSync(join(tmpdir(), "troupe-mutation-"));
const running = new Set();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => end(130));

const copies = Array.from({ length: Math.min(jobs, defects.length) }, (_, index) => copyOfTree(`copy-${index}`));
const brokenTests = await control(copies[0]);
const counts = { caught: 0, survived: 0, broken: 0 };
const waiting = [...defects];
await Promise.all(copies.map(work));
const seconds = Math.round((performance.now() - started) / 1000);
console.log(`${counts.caught} caught, ${counts.survived} survived, ${counts.broken} broken (${seconds} s)`);
end(counts.caught === defects.length ? 0 : 1);

/** Takes defects from the list until none is left. Each worker has a copy of the tree of its own. */
async function work(copy) {
  for (let defect = waiting.shift(); defect; defect = waiting.shift()) {
    const since = performance.now();
    const { verdict, detail } = await tryDefect(copy, defect).catch((error) => broken(error.message));
    counts[verdict]++;
    const time = `${((performance.now() - since) / 1000).toFixed(1)} s`;
    console.log(`${verdict.padEnd(9)}${defect.id.padEnd(36)}${time.padStart(7)}  ${detail}`);
  }
}

async function tryDefect(copy, defect) {
  const unusable = brokenTests.get(defect);
  if (unusable) return broken(unusable);
  const path = join(copy, defect.file);
  const original = readFileSync(path, "utf8");
  const occurrences = original.split(defect.find).length - 1;
  if (occurrences !== 1) return broken(`"find" occurs ${occurrences} times in ${defect.file}, not once`);
  writeFileSync(
    path,
    original.replace(defect.find, () => defect.replace),
  );
  try {
    if (defect.build) await buildProgram(copy);
    return judge(defect, await runTests(copy, [defect], RUN_LIMIT_MS));
  } finally {
    writeFileSync(path, original);
  }
}

/** Runs every named test without a defect. Returns the reason for each defect whose test does not pass. */
async function control(copy) {
  if (defects.some((defect) => defect.build)) await buildProgram(copy);
  const report = await runTests(copy, defects, CONTROL_LIMIT_MS);
  const reasons = new Map();
  for (const defect of defects) {
    const { verdict, detail } = judge(defect, report);
    if (verdict === "caught") reasons.set(defect, `the test fails without the defect: ${detail}`);
    if (verdict === "broken") reasons.set(defect, detail);
  }
  const time = Math.round((performance.now() - started) / 1000);
  console.log(`control: ${defects.length - reasons.size} of ${defects.length} tests pass without a defect (${time} s)`);
  return reasons;
}

/** Decides by the report of vitest whether the named test failed. */
function judge({ test, title }, report) {
  const file = report.testResults.find(({ name }) => name.endsWith(`/${test}`));
  if (!file) return broken(`${test} did not run`);
  const named = file.assertionResults.filter(
    ({ fullName, status }) => fullName.includes(title) && (status === "passed" || status === "failed"),
  );
  if (named.length === 0) return broken(firstLine(file.message) || `no test of ${test} has the title "${title}"`);
  const messages = named.filter(({ status }) => status === "failed").map(({ failureMessages }) => failureMessages[0]);
  if (messages.length === 0) return { verdict: "survived", detail: `${test}: ${title}` };
  const seen = messages.find((message) => !NOT_A_VERDICT.test(message));
  if (seen === undefined) return broken(firstLine(messages[0]));
  return { verdict: "caught", detail: firstLine(seen) };
}

/** Runs the tests of these defects in one vitest process and returns its JSON report. */
async function runTests(copy, tested, limit) {
  const report = `${copy}-report.json`;
  const files = [...new Set(tested.map(({ test }) => test))];
  const titles = [...new Set(tested.map(({ title }) => title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")))];
  rmSync(report, { force: true });
  await run(
    [
      join(copy, "node_modules", "vitest", "vitest.mjs"),
      "run",
      "--reporter=json",
      `--outputFile=${report}`,
      `--testNamePattern=${titles.join("|")}`,
      ...files,
    ],
    { copy, limit },
  );
  return JSON.parse(readFileSync(report, "utf8"));
}

async function buildProgram(copy) {
  const { code, output } = await run([join(copy, "scripts", "build.mjs")], { copy, limit: RUN_LIMIT_MS });
  if (code !== 0) throw new Error(`the build fails: ${firstLine(output)}`);
}

/** Runs node in the copy. Rejects when the process exceeds its time limit. */
function run(args, { copy, limit }) {
  const env = { ...cleanEnvironment(join(scratch, "home")), TROUPE_SKIP_TYPES: "1" };
  for (const name of Object.keys(env)) if (name.startsWith("VITEST") || name === "NODE_ENV") delete env[name];
  const child = spawn(process.execPath, args, { cwd: copy, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output = (output + text).slice(-20_000);
    });
  return new Promise((done, reject) => {
    const timer = setTimeout(() => {
      endGroup(child);
      reject(new Error(`did not end within ${limit / 1000} s`));
    }, limit);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      running.delete(child);
      done({ code, output });
    });
  });
}

/** Copies the parts of the tree that tests read. A test that writes to its tree writes to the copy. */
function copyOfTree(name) {
  const copy = join(scratch, name);
  mkdirSync(copy);
  const skipped = new Set(["node_modules", "dist", ".git", "coverage"].map((entry) => join(root, entry)));
  cpSync(root, copy, { recursive: true, filter: (source) => !skipped.has(source) });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Loads the list. It is TypeScript, which not every supported version of Node runs. */
async function listed() {
  const { outputFiles } = await build({
    entryPoints: [resolve(root, options.from)],
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
  });
  const module = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
  return module.defects;
}

function broken(detail) {
  return { verdict: "broken", detail };
}

function firstLine(text) {
  return (text ?? "").trim().split("\n", 1)[0].slice(0, 160);
}

function endGroup(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The process has ended already.
  }
}

function end(code) {
  for (const child of running) endGroup(child);
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code);
}

function fail(message) {
  console.error(`mutation: ${message}`);
  process.exit(2);
}
