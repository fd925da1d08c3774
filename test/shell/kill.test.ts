import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { hostFolder } from "./host.ts";
import { shellStage } from "./stage.ts";

const slow = process.env.TROUPE_SLOW !== undefined;
const onLinux = process.platform === "linux";
const sandboxWorks = await hasBubblewrap();

/** Living processes with this word among their arguments. */
function living(token: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        const state = readFileSync(`/proc/${name}/stat`, "latin1").split(") ").at(-1)?.[0];
        return state !== "Z" && readFileSync(`/proc/${name}/cmdline`, "latin1").includes(token);
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function untilGone(token: string, withinMs: number): Promise<number[]> {
  const end = performance.now() + withinMs;
  while (living(token).length > 0 && performance.now() < end) await delay(50);
  return living(token);
}

let tokens = 0;
const newToken = (): string => `${5000 + tokens++}.${process.pid}${Date.now() % 1_000_000}`;

describe.runIf(onLinux).each([
  { mode: "off" as const, runs: true },
  { mode: "required" as const, runs: sandboxWorks },
])("stopping a command (sandbox $mode)", ({ mode, runs }) => {
  it.runIf(runs).concurrent.each([
    ["hangs", (token: string) => `sleep ${token}`],
    ["ignores TERM", (token: string) => `trap '' TERM; while :; do sleep ${token}; done`],
    ["left its group", (token: string) => `setsid sleep ${token} & sleep ${token}`],
    ["forked twice", (token: string) => `(setsid sh -c '(sleep ${token} &)' &) ; sleep ${token}`],
    ["forks on and on", (token: string) => `f() { sleep ${token} & sleep 0.05; f; }; f`],
  ])("ends one that %s, within three seconds (R21)", async (_, command) => {
    await using stage = await shellStage({ sandboxed: { mode } });
    const token = newToken();
    const { shellId } = await stage.run(command(token), { waitMs: 300 });
    expect(living(token).length).toBeGreaterThan(0);
    const begun = performance.now();
    await stage.shells.stop(shellId);
    expect(performance.now() - begun).toBeLessThan(3500);
    expect(await untilGone(token, 1000)).toEqual([]);
  });

  it.runIf(runs).concurrent("gives a command the chance to tidy up", async () => {
    await using stage = await shellStage({ sandboxed: { mode } });
    const { shellId } = await stage.run("trap 'echo tidied > note; exit' TERM; sleep 60 & wait", { waitMs: 300 });
    await stage.shells.stop(shellId);
    expect(await stage.workspace.read("note")).toBe("tidied\n");
  });

  it.runIf(runs).concurrent(
    "does not wait longer than a second for a grandchild that keeps the pipe, and ends it",
    async () => {
      await using stage = await shellStage({ sandboxed: { mode } });
      const token = newToken();
      const begun = performance.now();
      const reply = await stage.run(`sleep ${token} & echo done`);
      expect(performance.now() - begun).toBeLessThan(1500);
      expect(reply).toMatchObject({ output: "done\n", exitCode: 0 });
      expect(await untilGone(token, 3000)).toEqual([]);
    },
  );

  it.runIf(runs).concurrent("ends everything when the session closes, except what is detached", async () => {
    await using stage = await shellStage({ sandboxed: { mode } });
    const [token, kept] = [newToken(), newToken()];
    for (const way of ["sync", "async"] as const)
      await stage.run(`sleep ${token} & sleep ${token}`, { mode: way, waitMs: 0 });
    await stage.run(`sleep ${token}`, { shellId: "named", waitMs: 100 });
    // Its parent has ended, and neither group nor environment tells whose it is.
    await stage.run(`(env -i setsid sh -c '(sleep ${token} > /dev/null 2>&1 &)' &)`);
    const { shellId } = await stage.run(`sleep ${kept}`, { mode: "detached" });
    await delay(200);
    await stage.shells.closeAll();
    expect(await untilGone(token, 1000)).toEqual([]);
    await delay(1200);
    expect(living(kept).length).toBeGreaterThan(0);
    await stage.shells.stop(shellId);
    expect(await untilGone(kept, 1000)).toEqual([]);
  });
});

describe.runIf(onLinux)("after kill -9 of the process that runs the shells", () => {
  let folder: TempFolder;
  beforeAll(async () => {
    folder = await hostFolder();
  });
  afterAll(() => folder.remove());

  it.each([
    { mode: "off", runs: true },
    { mode: "required", runs: sandboxWorks },
  ])(
    "nothing it started lives five seconds later (sandbox $mode)",
    async ({ mode, runs }) => {
      if (!runs) return console.log("skipped: bubblewrap does not work here");
      const count = slow ? 200 : 30;
      const token = newToken();
      const place = folder.at(mode);
      mkdirSync(`${place}/workspace`, { recursive: true });
      mkdirSync(`${place}/state`, { recursive: true });
      const host = spawn(process.execPath, [folder.at("host.mjs"), place, String(count), mode, token], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await new Promise<void>((resolve, reject) => {
        host.stdout.once("data", () => resolve());
        host.once("exit", (code) => reject(new Error(`the host ended with ${code}`)));
      });
      await delay(300);
      const before = living(token).length;
      expect(before).toBeGreaterThan(count);
      host.kill("SIGKILL");
      const begun = performance.now();
      const survivors = await untilGone(token, 5000);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      console.log(`sandbox ${mode}: ${before} processes, ${survivors.length} left after ${seconds} s`);
      expect(survivors).toEqual([]);
    },
    120_000,
  );
});
