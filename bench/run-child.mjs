import { fork, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const probe = fileURLToPath(new URL("./usage-probe.cjs", import.meta.url));
const TIMEOUT_MS = 120_000;
const STOP_MS = 10_000;
const running = new Set();

/** Ends what is still running, for when the bench itself is ended. */
export function endChildren() {
  for (const child of running) child.kill("SIGKILL");
}

/** The monotonic clock, in milliseconds, the same in every process of this machine. */
export function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Runs `node <argv>` to its end and tells how long it took. With `measure` also its CPU time and peak memory. Its
 * output goes to files, which costs the same for everyone; input is empty.
 */
export async function runChild({ argv, environment, cwd, scratch, measure = false }) {
  const files = Object.fromEntries(["out", "err", "usage"].map((name) => [name, join(scratch, `child.${name}`)]));
  for (const file of Object.values(files)) rmSync(file, { force: true });
  const out = openSync(files.out, "w");
  const err = openSync(files.err, "w");
  const startedAt = now();
  const child = spawn(process.execPath, [...(measure ? ["--require", probe] : []), ...argv], {
    cwd,
    env: { ...cleanEnvironment(scratch), ...environment, BENCH_USAGE_FILE: files.usage },
    stdio: ["ignore", out, err],
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
  const code = await ending(child).finally(() => clearTimeout(timer));
  const wallMs = now() - startedAt;
  closeSync(out);
  closeSync(err);
  return {
    startedAt,
    wallMs,
    code,
    outBytes: statSync(files.out).size,
    output: () => readFileSync(files.out, "utf8"),
    complaint: lastWords(readFileSync(files.err, "utf8")),
    ...(measure && code === 0 && JSON.parse(readFileSync(files.usage, "utf8"))),
  };
}

/** Starts `node <argv>` with pipes, to be spoken to. `stop` ends it, by force when it does not end by itself. */
export function startChild({ argv, environment, cwd, scratch }) {
  const child = spawn(process.execPath, argv, {
    cwd,
    env: { ...cleanEnvironment(scratch), ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (chunk) => {
    said = (said + chunk).slice(-4000);
  });
  child.stdin.on("error", () => {}); // told by `ended`
  const ended = ending(child);
  ended.catch(() => {}); // whoever waits for it hears
  return {
    child,
    ended,
    complaint: () => lastWords(said),
    async stop(signal) {
      if (signal) child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await ended.finally(() => clearTimeout(timer));
    },
  };
}

function ending(child) {
  running.add(child);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? signal));
  }).finally(() => running.delete(child));
}

/** The scripted model, in a process of its own: `take` gives the requests seen since the last one. */
export async function startMock(folder) {
  const child = fork(fileURLToPath(new URL("./mock-model.mjs", import.meta.url)), [folder], {
    execArgv: [],
    env: cleanEnvironment(folder),
  });
  const ended = ending(child).then((code) => {
    throw new Error(`the mock model ended (${code})`);
  });
  ended.catch(() => {}); // expected after `stop`
  const answer = () => Promise.race([ended, new Promise((resolve) => child.once("message", resolve))]);
  const { port } = await answer();
  return {
    port,
    async take() {
      const pending = answer();
      child.send("take");
      return (await pending).requests;
    },
    stop() {
      child.disconnect();
    },
  };
}

/** Nothing of the user's own settings, keys or proxies may colour a figure. */
function cleanEnvironment(home) {
  const { PATH, SystemRoot } = process.env;
  return { PATH, ...(SystemRoot && { SystemRoot }), HOME: home, LANG: "C.UTF-8", NO_COLOR: "1", TERM: "dumb" };
}

const lastWords = (text) => text.trim().split("\n").slice(-4).join(" | ").slice(-600);
