import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { commandLimits, limitedProgram } from "../../src/tools/shell/process/limits.ts";
import { HANG_MS } from "../support/work.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const sandboxWorks = await hasBubblewrap();
const onLinux = process.platform === "linux";
const isRoot = process.getuid?.() === 0;
const MIB = 1024 * 1024;

const living = (token: string): number =>
  readdirSync("/proc").filter((pid) => {
    try {
      const state = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.[0];
      return state !== "Z" && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(token);
    } catch {
      return false;
    }
  }).length;

describe.runIf(onLinux).each([
  { mode: "off" as const, runs: true },
  { mode: "required" as const, runs: sandboxWorks },
])("the limits of a command (sandbox $mode)", ({ mode, runs }) => {
  it.runIf(runs)("command limits apply as soft and hard limits, in fresh and named shells", async () => {
    await using stage = await shellStage({
      sandboxed: { mode },
      limits: { fileBytes: 2 * MIB, openFiles: 500, addressSpaceBytes: 4096 * MIB },
    });
    const command = "for kind in S H; do for what in c f n v; do ulimit -$kind$what; done; done";
    const expected = "0\n2048\n500\n4194304\n".repeat(2);
    expect((await stage.run(command)).output).toBe(expected);
    expect((await stage.run(command, { shellId: "named" })).output).toBe(expected);
  });

  it.runIf(runs)("command limits stop a file that grows too large", async () => {
    await using stage = await shellStage({ sandboxed: { mode }, limits: { fileBytes: MIB } });
    const reply = await stage.run("head -c 3000000 /dev/zero > big; echo $?");
    expect(reply.output).toMatch(/153\n$/);
    expect(statSync(stage.workspace.at("big")).size).toBe(MIB);
  });

  it.runIf(runs)("command limits end a fork bomb, and none of its processes survive", async () => {
    await using stage = await shellStage({ sandboxed: { mode }, limits: { processes: 60 } });
    const token = `7${process.pid}.${Date.now() % 100_000}`;
    // Bounded even if nothing stopped it: it ends by itself after 400.
    const bomb = `for number in {1..400}; do sleep ${token} & done; wait`;
    const { shellId, output } = await stage.run(bomb, { waitMs: isRoot ? HANG_MS : 1500 });
    // Without a sandbox the kernel counts all processes of the user, so what runs already comes on top.
    if (isRoot) expect(output).toContain("[Ended: more than 60 processes.]");
    else if (mode === "required") expect(living(token)).toBeLessThan(70);
    if (stage.shells.list().some((shell) => shell.shellId === shellId)) await stage.shells.stop(shellId);
    await expect.poll(() => living(token)).toBe(0);
  });

  it.runIf(runs && isRoot)("command limits end a fork bomb also while more processes of others end", async () => {
    await using stage = await shellStage({ sandboxed: { mode }, limits: { processes: 60 } });
    const token = `8${process.pid}.${Date.now() % 100_000}`;
    const others = spawn("bash", ["-c", `for number in {1..150}; do sleep ${token} & done; wait`], { detached: true });
    await expect.poll(() => living(token)).toBeGreaterThan(150);
    const bomb = `until [ -e go ]; do sleep 0.05; done; for number in {1..100}; do sleep 300 & done; wait`;
    const { shellId } = await stage.run(bomb, { mode: "async" });
    process.kill(-(others.pid ?? 0), "SIGKILL");
    await expect.poll(() => living(token)).toBe(0);
    await stage.workspace.files({ go: "" });
    const reply = await stage.wait(shellId);
    expect(reply.output).toContain("[Ended: more than 60 processes.]");
  });

  it.runIf(runs)("command limits end a command that runs longer than allowed, and keep what it printed", async () => {
    await using stage = await shellStage({ sandboxed: { mode }, maxRunMs: 400 });
    const { shellId } = await stage.run("echo begun; sleep 60", { mode: "async" });
    const reply = await stage.wait(shellId);
    expect(reply.output).toMatch(/^begun\n\n\[Ended: it ran longer than 0.4 seconds.\]\n/);
    expect(reply).toMatchObject({ state: "exited" });
  });
});

describe("the default limits", () => {
  it("the default command limits are generous: 512 processes or more, 4 GiB files, no limit on address space", () => {
    const { processes, ...rest } = commandLimits();
    expect(processes).toBeGreaterThanOrEqual(512);
    expect(rest).toEqual({ fileBytes: 4096 * MIB, openFiles: 16_384 });
  });

  it.runIf(onLinux)("the default command limits apply to a program that is started without bash", () => {
    const [file = "", ...rest] = limitedProgram(commandLimits({ fileBytes: MIB, openFiles: 300 }), false);
    const { stdout } = spawnSync(file, [...rest, "bash", "-c", "ulimit -f; ulimit -n; ulimit -c"], {
      encoding: "utf8",
    });
    expect(stdout).toBe("1024\n300\n0\n");
  });
});
