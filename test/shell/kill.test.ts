import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { TempFolder } from "../../src/testing/temp-folder.ts";
import { HANG_MS } from "../support/work.ts";
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

/** How many of them are `sleep` itself: what a command does after its start has begun. */
function sleeping(token: string): number {
  return living(token).filter((pid) => readCommand(pid) === `sleep\0${token}\0`).length;
}

function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return ""; // it has ended meanwhile
  }
}

/** `expect.poll` does not work in tests that run side by side. */
const soon = (check: () => void) => vi.waitFor(check, { timeout: HANG_MS });

async function untilGone(token: string): Promise<number[]> {
  const end = performance.now() + HANG_MS;
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
  ])("stopping a command ends one that %s (R21)", async (_, command) => {
    await using stage = await shellStage({ sandboxed: { mode } });
    const token = newToken();
    const { shellId } = await stage.run(command(token), { waitMs: 300 });
    await soon(() => expect(sleeping(token)).toBeGreaterThan(0));
    const begun = performance.now();
    await stage.shells.stop(shellId);
    expect(performance.now() - begun).toBeLessThan(HANG_MS);
    expect(await untilGone(token)).toEqual([]);
  });

  it.runIf(runs).concurrent("stopping a command gives it time to clean up", async () => {
    await using stage = await shellStage({ sandboxed: { mode } });
    const command = "trap 'echo tidied > note; exit' TERM; touch ready; sleep 60 & wait";
    const { shellId } = await stage.run(command, { waitMs: 0 });
    await soon(() => expect(existsSync(stage.workspace.at("ready"))).toBe(true));
    await stage.shells.stop(shellId);
    expect(await stage.workspace.read("note")).toBe("tidied\n");
  });

  it.runIf(runs).concurrent(
    "stopping a command does not wait for a grandchild that keeps the pipe, and ends it",
    async () => {
      await using stage = await shellStage({ sandboxed: { mode } });
      const token = newToken();
      const begun = performance.now();
      const reply = await stage.run(`sleep ${token} & echo done`);
      expect(performance.now() - begun).toBeLessThan(HANG_MS);
      expect(reply).toMatchObject({ output: "done\n", exitCode: 0 });
      expect(await untilGone(token)).toEqual([]);
    },
  );

  it.runIf(runs).concurrent("closing the session ends everything except detached commands", async () => {
    await using stage = await shellStage({ sandboxed: { mode } });
    const [token, kept] = [newToken(), newToken()];
    for (const way of ["sync", "async"] as const)
      await stage.run(`sleep ${token} & sleep ${token}`, { mode: way, waitMs: 0 });
    await stage.run(`sleep ${token}`, { shellId: "named", waitMs: 100 });
    // Its parent has ended, and neither group nor environment tells whose it is.
    await stage.run(`(env -i setsid sh -c '(sleep ${token} > /dev/null 2>&1 &)' &)`);
    const { shellId } = await stage.run(`sleep ${kept}`, { mode: "detached" });
    // A sandbox ends with its command, and so does what the command left behind in it.
    await soon(() => expect([sleeping(token), sleeping(kept)]).toEqual([mode === "off" ? 6 : 5, 1]));
    await stage.shells.closeAll();
    expect(await untilGone(token)).toEqual([]);
    await delay(1200);
    expect(living(kept).length).toBeGreaterThan(0);
    await stage.shells.stop(shellId);
    expect(await untilGone(kept)).toEqual([]);
  });
});

describe.runIf(onLinux)("kill -9 of the process that runs the shells", () => {
  let folder: TempFolder;
  beforeAll(async () => {
    folder = await hostFolder();
  });
  afterAll(() => folder.remove());

  it.each([
    { mode: "off", runs: true },
    { mode: "required", runs: sandboxWorks },
  ])(
    "kill -9 of the process with the shells leaves none of its commands running",
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
      await soon(() => expect(living(token).length).toBeGreaterThan(count));
      const before = living(token).length;
      host.kill("SIGKILL");
      const begun = performance.now();
      const survivors = await untilGone(token);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      console.log(`sandbox ${mode}: ${before} processes, ${survivors.length} left after ${seconds} s`);
      expect(survivors).toEqual([]);
    },
    120_000,
  );
});
