/** Commands that ask to leave the sandbox (D15); whether they may is decided elsewhere. */
import { describe, expect, it } from "vitest";
import { bash } from "../../src/tools/shell/bash.ts";
import { writeBash } from "../../src/tools/shell/write-bash.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { type ShellStage, shellStage } from "./stage.ts";

const works = await hasBubblewrap();

function contextOf({ shells, workspace }: ShellStage, toolCallId = "call_1") {
  const { path: cwd } = workspace;
  const { signal } = new AbortController();
  return { cwd, roots: [cwd], toolCallId, signal, progress: () => undefined, shells };
}

describe("a command that asks to leave the sandbox (D15)", () => {
  it("leaving the sandbox (D15) needs permission besides the permission to run", async () => {
    await using stage = await shellStage();
    const context = contextOf(stage);
    const { cwd } = context;
    const call = bash.bind({ command: "make", description: "build", unsandboxed: true });
    expect(await call.access(context)).toEqual([
      { kind: "shell", command: "make", cwd, intention: "build", unsandboxed: true },
      { kind: "sandbox-off", command: "make", intention: "build" },
    ]);
    expect(await bash.bind({ command: "make", unsandboxed: false }).access(context)).toHaveLength(1);
  });

  it("leaving the sandbox is refused where a sandbox is required, even if the user agreed", async () => {
    await using stage = await shellStage({ sandboxed: { mode: "required" } });
    await expect(stage.run("touch ran", { unsandboxed: true })).rejects.toThrow("no command can leave it");
    expect(await stage.workspace.tree()).toEqual({});
  });

  it.runIf(works)("a command with permission runs outside of the sandbox, and the next one does not", async () => {
    await using stage = await shellStage({ sandboxed: { mode: "auto" } });
    const probe = `cat '${stage.state.path}/secret'`;
    await stage.state.files({ secret: "canary" });
    expect((await stage.run(probe, { unsandboxed: true })).output).toBe("canary");
    expect((await stage.run(probe)).output).not.toContain("canary");
  });

  it.runIf(works)("a command outside of the sandbox shares no shell with others", async () => {
    await using stage = await shellStage({ sandboxed: { mode: "auto" } });
    await stage.run("true", { shellId: "out", unsandboxed: true });
    await expect(stage.run("true", { shellId: "out" })).rejects.toThrow("was started outside the sandbox");
    await stage.run("true", { shellId: "in" });
    await expect(stage.run("true", { shellId: "in", unsandboxed: true })).rejects.toThrow("started inside the sandbox");
  });

  it.runIf(works)("input to a command outside of the sandbox requires permission before it is typed", async () => {
    await using stage = await shellStage({ sandboxed: { mode: "auto" } });
    const unasked = writeBash.bind({ shellId: "out", input: "rm x{enter}", delay: 0 });
    expect(await unasked.access(contextOf(stage, "call_1"))).toHaveLength(1);
    await stage.run("cat", { shellId: "out", mode: "async", unsandboxed: true });
    await expect(unasked.run(contextOf(stage, "call_1"))).rejects.toThrow("runs outside the sandbox");
    const asked = writeBash.bind({ shellId: "out", input: "hello{enter}", delay: 0.2 });
    expect(await asked.access(contextOf(stage, "call_2"))).toMatchObject([{ kind: "shell" }, { kind: "sandbox-off" }]);
    expect((await asked.run(contextOf(stage, "call_2"))).content).toContain("hello");
  });
});
