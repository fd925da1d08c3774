// The cost of starting a command in the sandbox, beside the same command without it.
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { spread } from "./statistics.mjs";

const STARTS = 40;
const source = fileURLToPath(new URL("../src/tools/shell/sandbox/sandbox.ts", import.meta.url));
const bash = ["bash", "--noprofile", "--norc", "-c", "true"];

export const sandboxScenarios = [
  {
    name: "sandbox",
    async figures({ stage }) {
      const outfile = join(stage.home, "sandbox.mjs");
      await build({ entryPoints: [source], outfile, bundle: true, platform: "node", format: "esm", logLevel: "error" });
      const { createSandbox } = await import(pathToFileURL(outfile).href);
      const stateRoot = join(stage.home, "sandbox-state");
      mkdirSync(stateRoot, { recursive: true });
      const sandbox = createSandbox({ mode: "required", stateRoot });
      const probe = await sandbox.probe();
      if (!probe.available) throw new Error(probe.reason);
      const request = { workspace: [stage.workspace], cwd: stage.workspace, ownTerminal: false, detached: false };
      const prepared = await sandbox.prepare(request);
      const times = { floor: [], troupe: [] };
      try {
        for (let start = 0; start < STARTS; start++) {
          times.floor.push(await timed(bash, stage.workspace));
          times.troupe.push(
            await timed([...prepared.direct.launcher(3), ...bash], stage.workspace, prepared.direct.filter),
          );
        }
      } finally {
        await prepared.release();
        await sandbox.close();
      }
      const figures = { floor: spread(times.floor), troupe: spread(times.troupe) };
      return [{ name: "start of a sandboxed command", unit: "ms", ...figures, target: { kind: "ratio", limit: 5 } }];
    },
  },
];

/** Milliseconds until the command has ended and closed its output. */
function timed([file, ...rest], cwd, filter) {
  const descriptor = filter === undefined ? undefined : openSync(filter, "r");
  const begun = performance.now();
  const stdio = ["ignore", "pipe", "ignore", ...(descriptor === undefined ? [] : [descriptor])];
  const child = spawn(file, rest, { cwd, stdio, detached: true, env: { PATH: "/usr/bin:/bin" } });
  child.stdout.resume();
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (descriptor !== undefined) closeSync(descriptor);
      if (code === 0) resolve(performance.now() - begun);
      else reject(new Error(`the command ended with ${code}`));
    });
  });
}
