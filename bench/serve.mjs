// A server of the built program for the contract scenarios, with what it uses as the system counts it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environmentOf } from "./agent-scenarios.mjs";
import { startChild } from "./run-child.mjs";

const launcher = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const emitClock = fileURLToPath(new URL("./emit-clock.cjs", import.meta.url));
const library = new URL("../dist/lib/sdk.js", import.meta.url).href;
const LISTEN_MS = 30_000;
const ANSWER_MS = 60_000;

/** `flags` beside --headless; with `times`, events say to the nanosecond when they were made. */
export function startServer({ stage, mock, flags, times = false, nodeArguments = [] }) {
  const environment = environmentOf({ peer: "troupe", stage, wire: "completions", port: mock.port });
  return startChild({
    argv: [...nodeArguments, ...(times ? ["--require", emitClock] : []), launcher, "--headless", ...flags],
    environment: { ...environment, TROUPE_HOME: join(stage.home, "contract"), TROUPE_NO_DISCOVERY: "1" },
    cwd: stage.workspace,
    scratch: stage.scratch,
  });
}

/** The SDK of this package, over the pipes of a server that runs. */
export async function clientOf(server) {
  const { createClient } = await import(library);
  const { child, ended } = server;
  const open = async () => ({
    input: child.stdout,
    output: child.stdin,
    ended: ended.then((code) => `the server ended (${code})`),
    isOwned: true,
    async close() {
      child.stdin.end();
      await server.stop();
    },
    kill: () => void child.kill("SIGKILL"),
  });
  return createClient({ connection: { kind: "custom", open } });
}

export async function clientAt(port) {
  const { createClient } = await import(library);
  return createClient({ connection: { kind: "tcp", host: "127.0.0.1", port } });
}

/** Where a server that was started with --port listens. */
export function portOf({ child, ended }) {
  let said = "";
  return Promise.race([
    ended.then((code) => Promise.reject(new Error(`the server ended with ${code} before it listened`))),
    within(LISTEN_MS, "the server to listen", (resolve) => {
      child.stdout.on("data", (chunk) => {
        said += chunk;
        const [, port] = /listening on port (\d+)/i.exec(said) ?? [];
        if (port) resolve(Number(port));
      });
    }),
  ]);
}

/** Resolves with what `begin` gives its argument; rejects when that takes too long. */
function within(milliseconds, what, begin) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`waited ${milliseconds / 1000} s for ${what}`)), milliseconds);
    const settle = (value) => {
      clearTimeout(timer);
      resolve(value);
    };
    begin(settle, reject);
  });
}

/** A prompt answered, or an error. */
export function ask(session, prompt) {
  return session.sendAndWait({ prompt }, { timeout: ANSWER_MS });
}

/** CPU time of all its threads so far, in milliseconds. */
export function cpuOf({ child }) {
  const threads = `/proc/${child.pid}/task`;
  const nanoseconds = readdirSync(threads).map((thread) => {
    const [used] = readFileSync(`${threads}/${thread}/schedstat`, "utf8").split(" ");
    return Number(used);
  });
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}

/** Memory in bytes: `VmRSS` now, `VmHWM` at its most. */
export function memoryOf({ child }, field) {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
}
