import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { create } from "../../src/tools/files/create.ts";
import { edit } from "../../src/tools/files/edit.ts";
import { fileLedger, rememberedFiles } from "../../src/tools/files/files.ts";
import { view } from "../../src/tools/files/view.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { gitAccessMounts, worktreeAccess } from "../../src/worktrees/worktree-access.ts";
import { mergeWorktree } from "../../src/worktrees/worktree-merge.ts";
import { worktreeState } from "../../src/worktrees/worktree-state.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";
import { call, contextFor, failureOf, workspace } from "../tools/workspace.ts";
import { fingerprint, worktreeStage } from "./worktree-stage.ts";

const agentIn = (root: string, agent = "main", ledger = fileLedger()) => ({
  ...contextFor(root),
  files: rememberedFiles({ keep: async () => undefined, agent, ledger }),
});

describe("agents that write at the same time", () => {
  it("agents in worktrees leave the main tree unchanged until a merge, and conflicts show both versions", async () => {
    await using stage = await worktreeStage({ "shared.txt": "start\nend\n", "src/code.ts": "export {};\n" });
    await stage.write({ "mine.txt": "not committed\n" });
    const before = fingerprint(stage.main);
    const numbers = Array.from({ length: 10 }, (_, index) => index);
    const made = await Promise.all(numbers.map((number) => stage.make(`writer-${number}`)));
    await Promise.all(
      made.map(async ({ root, taskId }, number) => {
        const context = agentIn(root, taskId);
        await call(create, { path: `src/own-${number}.ts`, file_text: `export const n = ${number};\n` }, context);
        const outside = { path: join(stage.main, "shared.txt"), old_str: "start", new_str: "stolen" };
        expect((await failureOf(edit, outside, context)).message).toContain("outside");
        if (number < 2) await call(edit, { path: "shared.txt", old_str: "start", new_str: `by ${number}` }, context);
      }),
    );
    const states = await Promise.all(made.slice(0, 3).map(({ taskId }) => worktreeState(stage.ports(taskId))));
    expect(states.map(({ files }) => files)).toEqual([
      ["shared.txt", "src/own-0.ts"],
      ["shared.txt", "src/own-1.ts"],
      ["src/own-2.ts"],
    ]);
    expect(fingerprint(stage.main)).toEqual(before);

    const merged = await Promise.all([0, 2].map((number) => mergeWorktree(stage.ports(`writer-${number}`))));
    expect(merged).toEqual([
      { kind: "merged", files: ["shared.txt", "src/own-0.ts"] },
      { kind: "merged", files: ["src/own-2.ts"] },
    ]);
    const after = fingerprint(stage.main);
    const result = await mergeWorktree(stage.ports("writer-1"));
    if (result.kind !== "conflict") throw new Error(result.kind);
    expect(result.conflicts.map(({ path }) => path)).toEqual(["shared.txt"]);
    const [{ main = "", task = "", start = "" } = {}] = result.conflicts;
    expect([main, task, start].map((path) => readFileSync(path, "utf8"))).toEqual([
      "by 0\nend\n",
      "by 1\nend\n",
      "start\nend\n",
    ]);
    expect(fingerprint(stage.main)).toEqual(after);
  });

  it("a stale write of an agent in a shared tree is refused with the name of the sibling", async () => {
    const { root, write } = workspace();
    const path = write("a.txt", "one\n");
    const ledger = fileLedger();
    const [one, two] = [agentIn(root, "fix-parser", ledger), agentIn(root, "write-docs", ledger)];
    await call(view, { path }, one);
    await call(view, { path }, two);
    await call(edit, { path, old_str: "one", new_str: "two" }, one);
    const failure = await failureOf(edit, { path, old_str: "one", new_str: "three" }, two);
    expect(failure.message).toContain('was changed by agent "fix-parser" since you last read it');
    expect(readFileSync(path, "utf8")).toBe("two\n");
  });
});

describe.runIf(await hasBubblewrap())("a worktree in the sandbox", () => {
  it("a worktree in the sandbox can commit, and cannot touch files, branches or settings of the repository", async () => {
    await using stage = await worktreeStage();
    const { root } = await stage.make("one");
    await stage.make("sibling");
    stage.git(["pack-refs", "--all"]);
    stage.git(["branch", "precious"]);
    const sandbox = createSandbox({ mode: "required", stateRoot: stage.temp.at("session") });
    const run = async (command: string): Promise<string> => {
      const gitMounts = gitAccessMounts(await worktreeAccess(stage.ports("one")));
      const place = { workspace: [root], cwd: root, ownTerminal: false, detached: false, gitMounts };
      const prepared = await sandbox.prepare(place);
      if (prepared.kind !== "sandboxed") throw new Error("no sandbox");
      const [program = "", ...args] = [...prepared.launcher, "bash", "-c", command];
      const { stdout, stderr } = spawnSync(program, args, {
        encoding: "utf8",
        env: { ...process.env, HOME: "/nonexistent" },
      });
      await prepared.release();
      return stdout + stderr;
    };
    const before = fingerprint(stage.main);
    const commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm";
    expect(
      await run(`echo 1 > new.txt && ${commit} first && echo 2 > a.txt && ${commit} second && echo COMMITTED`),
    ).toBe("COMMITTED\n");
    expect(stage.git(["log", "--format=%s", "troupe/0123abcd/one"])).toBe("second\nfirst\nfirst\n");
    const git = `${stage.main}/.git`;
    const attacks = [
      `echo x > '${git}/config'`,
      `echo x > '${git}/hooks/post-commit'`,
      `echo x > '${git}/HEAD'`,
      `rm '${git}/index'`,
      `git update-ref refs/heads/main HEAD`,
      `git branch -f precious HEAD`,
      `git branch new-branch`,
      `git tag new-tag`,
      `git config user.name evil`,
      `echo x > '${git}/worktrees/sibling/HEAD'`,
      `echo x > '${git}/worktrees/one/config.worktree'`,
      `echo x > '${git}/worktrees/one/commondir'`,
      `echo x > '${git}/objects/info/alternates'`,
      `echo x > dirty && git stash -u`,
      `mv '${git}/refs' '${git}/refs2'`,
      `echo x > .git`,
    ];
    const outcome = await run(
      attacks.map((attack, number) => `(${attack}) 2>/dev/null && echo SUCCEEDED ${number}`).join("; "),
    );
    expect(outcome).toBe("");
    // Files in a temporary folder are not even seen inside; what counts is that they stay as they are.
    await run(`echo x > '${stage.main}/a.txt'; echo x > '${stage.main}/new'; rm dirty`);
    expect(fingerprint(stage.main)).toEqual(before);
    await sandbox.close();
    expect(await mergeWorktree(stage.ports("one"))).toEqual({ kind: "merged", files: ["a.txt", "new.txt"] });
  });
});
