import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { startWatchdog } from "../../src/tools/shell/process/watchdog.ts";
import { HANG_MS } from "../support/work.ts";

/** Nothing but its group tells whose it is: no mark in the environment, no file of the folder open. */
function unmarked() {
  const child = spawn("/bin/sh", ["-c", "sleep 60 & wait"], { detached: true, stdio: "ignore", env: {}, cwd: "/" });
  return { pid: child.pid ?? 0, ended: once(child, "exit") };
}

it.runIf(process.platform !== "win32")(
  "a watchdog kills a registered group as a whole, and spares one that was removed",
  async () => {
    await using folder = await tempFolder();
    const watchdog = await startWatchdog({ mark: `nobody-${process.pid}`, folder: folder.path });
    const [left, kept] = [unmarked(), unmarked()];
    for (const { pid } of [left, kept]) watchdog.watch(pid);
    watchdog.unwatch(kept.pid);
    watchdog.close();
    const end = await Promise.race([left.ended, delay(HANG_MS, "still there", { ref: false })]);
    await delay(100);
    const isKept = process.kill(-kept.pid, 0);
    for (const { pid } of end === "still there" ? [left, kept] : [kept]) process.kill(-pid, "SIGKILL");
    expect({ end, isKept }).toEqual({ end: [null, "SIGKILL"], isKept: true });
  },
);

it.runIf(process.platform === "linux")(
  "a watchdog spares the process that started it, and programs that only have the guard folder open",
  async () => {
    await using folder = await tempFolder();
    await build({
      entryPoints: ["src/tools/shell/process/watchdog.ts"],
      outfile: folder.at("watchdog.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
    });
    const reader = spawn("/bin/bash", ["-c", 'exec 7<"$1"; exec sleep 60', "bash", folder.path], { stdio: "ignore" });
    const left = spawn("/bin/bash", ["-c", 'exec 198<"$1"; exec sleep 60', "bash", folder.path], { stdio: "ignore" });
    const leftEnded = once(left, "exit");
    await expect.poll(() => readlinkSync(`/proc/${reader.pid}/fd/7`)).toBe(folder.path);
    await expect.poll(() => readlinkSync(`/proc/${left.pid}/fd/198`)).toBe(folder.path);
    const program = `
      import { startWatchdog } from ${JSON.stringify(folder.at("watchdog.mjs"))};
      (await startWatchdog({ mark: "spared", folder: ${JSON.stringify(folder.path)} })).close();
      process.stdin.resume();`;
    const owner = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["pipe", "ignore", "inherit"],
      env: { ...process.env, TROUPE_SHELL: "spared.1" },
    });
    const ownerEnded = once(owner, "exit");
    expect(await leftEnded).toEqual([null, "SIGKILL"]);
    // It searches six times more, so the others would be gone by the time that one started later is.
    await delay(1000);
    expect(reader.kill(0)).toBe(true);
    owner.stdin.end();
    expect(await ownerEnded).toEqual([0, null]);
    reader.kill("SIGKILL");
  },
);

it.runIf(process.platform === "linux")(
  "a watchdog removes mount points of a process that still counts as alive when its pipe closes",
  async () => {
    await using folder = await tempFolder();
    await build({
      entryPoints: ["src/tools/shell/process/watchdog.ts"],
      outfile: folder.at("watchdog.mjs"),
      bundle: true,
      platform: "node",
      format: "esm",
    });
    const point = folder.at("point");
    const program = `
      import * as fs from "node:fs";
      import { startWatchdog } from ${JSON.stringify(folder.at("watchdog.mjs"))};
      const records = ${JSON.stringify(folder.at("records"))};
      const left = { points: [{ path: ${JSON.stringify(point)}, kind: "folder" }], links: [], trees: [] };
      const started = fs.readFileSync("/proc/self/stat", "latin1").split(") ").at(-1).split(" ")[19];
      for (const path of [records, ${JSON.stringify(point)}]) fs.mkdirSync(path);
      fs.writeFileSync(records + "/mounts-" + process.pid + ".json", JSON.stringify({ pid: process.pid, started, ...left }));
      const sockets = () => fs.readdirSync("/proc/self/fd").filter((fd) => {
        try { return fs.readlinkSync("/proc/self/fd/" + fd).startsWith("socket:"); } catch { return false; }
      });
      const before = sockets();
      const watchdog = await startWatchdog({ mark: "ending", folder: "/dev/null/ending", records });
      watchdog.keep(left);
      setTimeout(() => {
        for (const fd of sockets()) if (!before.includes(fd)) fs.closeSync(Number(fd));
      }, 200);
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 2000);`;
    const owner = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    expect(await once(owner, "exit")).toEqual([null, "SIGKILL"]);
    await expect.poll(() => existsSync(point)).toBe(false);
  },
);

it.runIf(process.platform === "linux")("a watchdog undoes exactly the recorded changes, even older ones", async () => {
  await using folder = await tempFolder();
  const points = Array.from({ length: 9 }, (_, index) => folder.at(`point-${index}`));
  for (const path of [...points, folder.at("records")]) mkdirSync(path);
  const left = (index: number) => ({
    ...{ links: [], trees: [] },
    points: [{ path: points[index] ?? "", kind: "folder" as const }],
  });
  const watchdog = await startWatchdog({ mark: "kept", folder: "/dev/null/kept", records: folder.at("records") });
  const releases = points.map((_, index) => watchdog.keep(left(index)));
  for (const release of releases) release();
  // The last ones are still known to the watchdog, the first ones are not. One is kept twice and released once.
  for (const index of [0, 6, 7]) watchdog.keep(left(index));
  const [first, second] = [watchdog.keep(left(8)), watchdog.keep(left(8))];
  for (const release of [first, first]) release();
  watchdog.keep(left(1))();
  expect(second).toBeTypeOf("function");
  watchdog.close();
  await expect.poll(() => points.filter(existsSync)).toEqual([1, 2, 3, 4, 5].map((n) => points[n]));
});

it.runIf(process.platform !== "win32")("a watchdog that is dismissed searches for nothing", async () => {
  const marked = spawn("/bin/sleep", ["60"], { stdio: "ignore", env: { TROUPE_SHELL: "dismissed.1" } });
  const watchdog = await startWatchdog({ mark: "dismissed", folder: "/dev/null/dismissed" });
  watchdog.dismiss();
  await delay(1000);
  expect(marked.kill("SIGKILL")).toBe(true);
  await once(marked, "exit");
});
