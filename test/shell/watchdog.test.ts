import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { startWatchdog } from "../../src/tools/shell/watchdog.ts";

/** Nothing but its group tells whose it is: no mark in the environment, no file of the folder open. */
function unmarked() {
  const child = spawn("/bin/sh", ["-c", "sleep 60 & wait"], { detached: true, stdio: "ignore", env: {}, cwd: "/" });
  return { pid: child.pid ?? 0, ended: once(child, "exit") };
}

it.runIf(process.platform !== "win32")(
  "a watchdog kills a group it was told of by the group alone, and spares one that it was told to forget",
  async () => {
    await using folder = await tempFolder();
    const watchdog = await startWatchdog({ mark: `nobody-${process.pid}`, folder: folder.path });
    const [left, kept] = [unmarked(), unmarked()];
    for (const { pid } of [left, kept]) watchdog.watch(pid);
    watchdog.unwatch(kept.pid);
    watchdog.close();
    const end = await Promise.race([left.ended, delay(2000, "still there", { ref: false })]);
    await delay(100);
    const isKept = process.kill(-kept.pid, 0);
    for (const { pid } of end === "still there" ? [left, kept] : [kept]) process.kill(-pid, "SIGKILL");
    expect({ end, isKept }).toEqual({ end: [null, "SIGKILL"], isKept: true });
  },
);
