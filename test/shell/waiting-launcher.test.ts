import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { laterArguments, laterVariables } from "../../src/tools/shell/process/driver.ts";
import { OutputPipes } from "../../src/tools/shell/process/output-pipe.ts";
import { waitingProcess } from "../../src/tools/shell/process/shell-process.ts";
import { PROCESS_MARK } from "../../src/tools/shell/process/watchdog.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { hostFolder } from "./host.ts";
import { type ShellStage, shellStage } from "./stage.ts";

/** Pids of living processes that wait for their arguments, with marks that begin like this. */
function waiting(mark = `${PROCESS_MARK}.`): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const words = readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0");
        const environment = readFileSync(`/proc/${name}/environ`, "latin1").split("\0");
        const isOurs = environment.some(
          (line) => line.startsWith(`TROUPE_SHELL=${mark}`) && line.includes(".waiting-"),
        );
        return isOurs && words.includes("--args");
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** A stage whose next command continues a process that waits already. */
async function expecting(): Promise<ShellStage & { readonly pid: number }> {
  const stage = await shellStage({ sandboxed: {} });
  await stage.run("true");
  return { ...stage, pid: await expected(stage) };
}

async function expected({ shells }: ShellStage): Promise<number> {
  shells.expectCommand?.();
  await expect.poll(() => waiting()).toHaveLength(1);
  return waiting()[0] ?? 0;
}

describe.runIf(await hasBubblewrap())("a bubblewrap that was started before its command was known", () => {
  it("a spare bubblewrap runs the next command with the usual environment", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const look =
      "pwd; env | grep -v ^TROUPE_SHELL= | sort; set -o; ulimit -a; ls /proc/self/fd; cat /proc/mounts; echo $#";
    const { output } = await stage.run(look);
    await expected(stage);
    expect(await stage.run(look)).toMatchObject({ state: "exited", exitCode: 0, output });
  });

  it("a spare bubblewrap becomes the process of the next command", async () => {
    await using stage = await expecting();
    await stage.run("sleep 100", { waitMs: 0 });
    expect(stage.shells.list()).toMatchObject([{ pid: stage.pid, state: "running" }]);
  });

  it("a spare bubblewrap creates no mount point before the command is there", async () => {
    await using stage = await expecting();
    expect(readdirSync(stage.workspace.path)).toEqual([]);
  });

  it("a spare bubblewrap is not started before a session has run a command", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    stage.shells.expectCommand?.();
    await stage.run("sleep 0.2");
    expect(waiting()).toEqual([]);
  });

  it("a spare bubblewrap is started while the second command runs, for the third", async () => {
    await using stage = await expecting();
    await stage.run("sleep 100", { waitMs: 0 });
    const others = (): number[] => waiting().filter((pid) => pid !== stage.pid);
    await expect.poll(others).toHaveLength(1);
  });

  it("a spare bubblewrap gets no arguments from a command that contains null characters", async () => {
    await using stage = await expecting();
    const outside = stage.state.at("written");
    const attack = ["true", "--bind", "/", "/", "--setenv", "troupe_later_command", `touch ${outside}`].join("\0");
    await expect(stage.run(attack)).rejects.toThrow("NUL character");
    expect(existsSync(outside)).toBe(false);
    expect(await stage.run("echo still here")).toMatchObject({ exitCode: 0, output: "still here\n" });
  });

  it("a spare bubblewrap is not used for a command with other variables", async () => {
    await using stage = await expecting();
    expect(await stage.run("echo $EXTRA", { variables: { EXTRA: "more" } })).toMatchObject({ output: "more\n" });
    await expect.poll(() => waiting()).not.toContain(stage.pid);
  });

  it("a spare bubblewrap is replaced by an ordinary start when it was killed", async () => {
    await using stage = await expecting();
    process.kill(stage.pid, "SIGKILL");
    await expect.poll(() => waiting()).toEqual([]);
    expect(await stage.run("echo here")).toMatchObject({ exitCode: 0, output: "here\n" });
  });

  it("a spare bubblewrap ends with the session", async () => {
    const stage = await expecting();
    await stage[Symbol.asyncDispose]();
    await expect.poll(() => waiting()).toEqual([]);
  });

  it("a spare bubblewrap leaves the watchdog nothing to search for when its command has ended", async () => {
    const marked = spawn("/bin/sleep", ["60"], { stdio: "ignore", env: { TROUPE_SHELL: `${PROCESS_MARK}.other` } });
    const stage = await expecting();
    await stage.run("true");
    await stage[Symbol.asyncDispose]();
    await delay(1000);
    expect(marked.kill("SIGKILL")).toBe(true);
    expect(await once(marked, "exit")).toEqual([null, "SIGKILL"]);
  });

  it("a spare bubblewrap ends when troupe is killed", async () => {
    await using folder = await hostFolder();
    mkdirSync(folder.at("workspace"));
    const host = spawn(process.execPath, [folder.at("host.mjs"), folder.path, "1", "required", "token", "expect"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [mark] = await once(host.stdout.setEncoding("utf8"), "data");
    await expect.poll(() => waiting(mark.trim())).toHaveLength(1);
    host.kill("SIGKILL");
    await expect.poll(() => waiting(mark.trim())).toEqual([]);
  });

  it.each(["a part of the command", "everything but the end"])(
    "a spare bubblewrap runs nothing when it gets only %s",
    async (part) => {
      await using stage = await shellStage();
      mkdirSync(stage.state.at("pipes"));
      const pipes = new OutputPipes(stage.state.at("pipes"));
      const started = await waitingProcess({
        ...{ program: "/usr/bin/bwrap", filter: "/dev/null", environment: { PATH: "/usr/bin:/bin" }, pipes },
        command: laterArguments("/bin/bash"),
      });
      const beginning = { guardFolder: "", first: "", bash: "/bin/bash" };
      const variables = laterVariables("echo run; echo more", beginning).slice(0, -1);
      const cut =
        part === "a part of the command" ? variables.map(([name, value]) => [name, value.slice(0, 8)]) : variables;
      let output = "";
      const args = ["--ro-bind", "/", "/", ...cut.flatMap((variable) => ["--setenv", ...variable])];
      const process = started.start(args, (bytes) => {
        output += bytes.toString();
        return true;
      });
      expect({ code: await process.exited, output }).toEqual({ code: 126, output: "" });
    },
  );
});
