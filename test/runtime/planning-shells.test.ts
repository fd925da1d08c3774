import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { lazyShells } from "../../src/runtime/permissions/shells.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import type { Sandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import type { ShellRequest } from "../../src/tools/shell/shells.ts";
import { onStage } from "../features/stage.ts";

/** The shells of a session, and what the sandbox was asked for. No sandbox is there. */
function shellsIn(folder: string, isPlanning: () => boolean) {
  const asked: unknown[] = [];
  const sandbox: Sandbox = {
    records: "",
    probe: async () => ({ available: false, reason: "not here" }),
    prepare: async ({ readOnlyWorkspace }) => {
      asked.push(readOnlyWorkspace);
      return { kind: "plain" };
    },
    sweep: async () => [],
    close: async () => undefined,
  };
  const shells = lazyShells({ folder: `${folder}/files`, sandbox: async () => sandbox, isPlanning });
  onTestFinished(() => shells.closeAll());
  const run = (command: string, more: Partial<ShellRequest> = {}) =>
    shells.run({
      ...{ command, cwd: folder, roots: [folder], mode: "sync", waitMs: 20_000 },
      signal: new AbortController().signal,
      ...more,
    });
  return { shells, asked, run };
}

describe("commands in plan mode", () => {
  it("only commands in plan mode get a read-only workspace from the sandbox", async () => {
    await using folder = await tempFolder();
    let planning = true;
    const { run, asked } = shellsIn(folder.path, () => planning);
    await run("true");
    await run("sleep 0", { mode: "detached", shellId: "left" });
    await run("true", { readOnly: false });
    planning = false;
    await run("true");
    expect(asked).toEqual([true, true, false, false]);
  });

  it("commands in plan mode neither run in a shell that was started to write, nor type into one", async () => {
    await using folder = await tempFolder();
    let planning = false;
    const { run, shells } = shellsIn(folder.path, () => planning);
    await run("x=1", { shellId: "work" });
    await run("read line; touch typed", { shellId: "waits", mode: "async" });
    planning = true;
    await expect(run("touch made", { shellId: "work" })).rejects.toThrow("was started before plan mode was on");
    const typing = { shellId: "waits", input: "go{enter}", waitMs: 100, signal: new AbortController().signal };
    await expect(shells.write(typing)).rejects.toThrow("Plan mode is on");
    await run("ls", { shellId: "plan" });
    planning = false;
    await expect(run("touch made", { shellId: "plan" })).rejects.toThrow("was started while planning");
    expect([existsSync(folder.at("made")), existsSync(folder.at("typed"))]).toEqual([false, false]);
  });

  it("commands in plan mode start no program of the repository's git configuration, without a sandbox too", async () => {
    await using folder = await tempFolder({ "a.txt": "one\n", ".gitattributes": "*.txt diff=evil\n" });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: folder.path });
    git("init", "-q");
    git("add", ".");
    git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first");
    await folder.files({ "a.txt": "two\n" });
    git("config", "core.fsmonitor", "touch fsmonitor-ran; false");
    git("config", "diff.evil.textconv", "touch textconv-ran; cat");
    let planning = true;
    const { run } = shellsIn(folder.path, () => planning);
    const { output } = await run("git status --short && git diff");
    expect(output).toContain("+two");
    expect([existsSync(folder.at("fsmonitor-ran")), existsSync(folder.at("textconv-ran"))]).toEqual([false, false]);
    planning = false;
    await run("git status");
    expect(existsSync(folder.at("fsmonitor-ran"))).toBe(true);
  });

  it("commands in plan mode follow the mode of the session", async () => {
    const look = calls(["bash", { command: "git status" }]);
    const permissions = { allTools: true };
    await onStage(
      [look, says("seen"), look, says("seen")],
      { permissions, mode: "plan" },
      async ({ session, folder }) => {
        execFileSync("git", ["init", "-q"], { cwd: folder });
        execFileSync("git", ["config", "core.fsmonitor", "touch fsmonitor-ran; false"], { cwd: folder });
        await session.sendAndWait({ prompt: "look" });
        expect(existsSync(join(folder, "fsmonitor-ran"))).toBe(false);
        await session.mainAgent.modes.set("interactive");
        await session.sendAndWait({ prompt: "look" });
        expect(existsSync(join(folder, "fsmonitor-ran"))).toBe(true);
      },
    );
  });
});
