/** Runs commands in real bash, in a folder of their own, where every program is a stub that writes down its words. */
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";

const STUBS = "git grep npm ls cat curl wget rm make node foo tail echo true printf head sort a b".split(" ");
/** They note their words and then do what they are for, so that what they wrap is noted as well. */
const WRAPPERS: Readonly<Record<string, readonly string[]>> = {
  env: ["/usr/bin/env"],
  timeout: ["/usr/bin/timeout"],
  nice: ["/usr/bin/nice"],
  nohup: ["/usr/bin/nohup"],
  xargs: ["/usr/bin/xargs"],
  stdbuf: ["/usr/bin/stdbuf"],
  setsid: ["/usr/bin/setsid"],
  find: ["/usr/bin/find"],
  sh: ["/bin/sh"],
  bash: ["/bin/bash"],
  dash: ["/bin/dash", "/bin/sh"],
};
const DEADLINE_MS = 10_000;

export interface Tracer {
  /** Every program that ran, with its words, in no particular order. */
  run(command: string): Promise<string[][]>;
}

export function createTracer(folder: string): Tracer {
  const programs = join(folder, "programs");
  const traces = join(folder, "traces");
  const work = join(folder, "work");
  for (const path of [folder, programs, traces, work]) fs.mkdirSync(path);
  fs.writeFileSync(join(work, "README"), "read me\n");
  const note = `{ printf '%s\\0' "\${0##*/}" "$@"; printf '\\001\\0'; } >> ${traces}/$$`;
  const stub = (name: string, then: string): void =>
    fs.writeFileSync(join(programs, name), `#!/bin/sh\n${note}\n${then}\n`, { mode: 0o755 });
  for (const name of STUBS) stub(name, "exit 0");
  for (const [name, places] of Object.entries(WRAPPERS)) {
    const place = places.find((path) => fs.existsSync(path));
    if (place !== undefined) stub(name, `exec ${place} "$@"`);
  }
  // Bash asks this function about every name it does not find.
  const notFound = `() { { printf '%s\\0' "$@"; printf '\\001\\0'; } >> ${traces}/$BASHPID; }`;
  return {
    async run(command) {
      await bash(command, { cwd: work, programs, notFound });
      return readTraces(traces);
    },
  };
}

/** Resolves when bash and everything it left in the background has ended: all of them hold descriptor 3. */
function bash(command: string, place: { cwd: string; programs: string; notFound: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/bash", ["--norc", "--noprofile", "-c", "--", command], {
      cwd: place.cwd,
      env: {
        PATH: place.programs,
        HOME: place.cwd,
        LC_ALL: "C.UTF-8",
        "BASH_FUNC_command_not_found_handle%%": place.notFound,
      },
      stdio: ["ignore", "ignore", "ignore", "pipe"],
      detached: true,
    });
    const timer = setTimeout(() => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, DEADLINE_MS);
    child.stdio[3]?.on("data", () => {});
    child.on("error", reject);
    child.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function readTraces(folder: string): string[][] {
  const found: string[][] = [];
  for (const name of fs.readdirSync(folder)) {
    const path = join(folder, name);
    let record: string[] = [];
    for (const word of fs.readFileSync(path, "utf8").split("\0").slice(0, -1)) {
      if (word !== "\u0001") record.push(word);
      else {
        found.push(record);
        record = [];
      }
    }
    fs.rmSync(path);
  }
  return found;
}
