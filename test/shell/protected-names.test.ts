/** Names in a workspace that commands can neither read nor change, wherever they stand. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const CANARY = "canary-5150";

describe.runIf(works)("protected names in the sandbox", () => {
  it("protected names include .env files at any depth, which are hidden, and the targets of their links", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    const deep = "a/b/c/d/e/f/g/.env";
    await workspace.files({ [deep]: CANARY, "dist/.env": CANARY, "values/live": CANARY, "a/.env.dist": "EXAMPLE" });
    symlinkSync("../values/live", workspace.at("a/.env.local"));
    const command = `cat ${deep} dist/.env a/.env.local values/live a/.env.dist`;
    const { output } = await stage.run(command);
    expect(output).not.toContain(CANARY);
    expect(output).toMatch(/EXAMPLE$/);
    await using open = await shellStage({ sandboxed: { environmentFiles: true } });
    const { path: cwd } = workspace;
    expect((await open.run(`cat ${deep}`, { cwd, roots: [cwd] })).output).toBe(CANARY);
  });

  it("protected names include files in subfolders that an editor or a shell runs, which cannot be changed", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    await workspace.files({ "below/.vscode/tasks.json": "mine", "below/.envrc": "mine" });
    const command = "echo x > below/.vscode/tasks.json; echo x > below/.envrc; mv below/.vscode below/away; echo done";
    expect((await stage.run(command)).output).toMatch(/done\n$/);
    const kept = ["below/.vscode/tasks.json", "below/.envrc"].map((path) => workspace.read(path));
    expect(await Promise.all(kept)).toEqual(["mine", "mine"]);
  });

  it("protected names do not prevent text files beside them, and nothing else is left behind", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    await workspace.files({ ".github/CODEOWNERS": "" });
    const command = "mkdir -p .github/workflows && echo ci > .github/workflows/ci.yml && echo done";
    expect((await stage.run(command)).output).toBe("done\n");
    expect([readdirSync(workspace.path), readdirSync(workspace.at(".github"))]).toEqual([
      [".github"],
      ["CODEOWNERS", "workflows"],
    ]);
  });

  it("protected names leave a repository without an info folder working, and add none", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    spawnSync("git", ["init", "-q", "."], { cwd: workspace.path });
    rmSync(workspace.at(".git/info"), { recursive: true, force: true });
    const { output } = await stage.run("git status --short && echo x > .git/info/attributes; echo done");
    expect(output).toMatch(/Read-only file system\ndone\n$/);
    expect(existsSync(workspace.at(".git/info"))).toBe(false);
  });

  it("protected names cause a refusal when there are more .env files than can be hidden", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const files = Array.from({ length: 1100 }, (_, index) => [`f${index % 30}/.env.${index}`, ""]);
    await stage.workspace.files(Object.fromEntries(files));
    await expect(stage.run("touch ran")).rejects.toThrow(
      /too many .env files and nested repositories.*Nothing was run/s,
    );
    expect(existsSync(stage.workspace.at("ran"))).toBe(false);
  });

  it.each([
    [".github/conf", { ".github/conf/tasks.json": "mine" }],
    [".claude/conf", { ".claude/conf/tasks.json": "mine" }],
    ["store/conf", { "store/conf/tasks.json": "mine", "store/HEAD": "", "store/objects/x": "", "store/refs/x": "" }],
    ["lib/.git/conf", { "lib/.git/conf/tasks.json": "mine", "lib/.git/HEAD": "" }],
  ])("protected names keep their content when they are a link to %s", async (target, files) => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files(files);
    symlinkSync(target, stage.workspace.at(".vscode"));
    const { output } = await stage.run(
      `echo x > .vscode/tasks.json; echo x > ${target}/tasks.json; echo x > ${target}/new; echo done`,
    );
    expect(output).toMatch(/done\n$/);
    expect(readdirSync(stage.workspace.at(target))).toEqual(["tasks.json"]);
    expect(await stage.workspace.read(`${target}/tasks.json`)).toBe("mine");
  });

  it("protected names cause no refusal when two .git files lead to the same folder", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    spawnSync("git", ["init", "-q", "--bare", "store/deep"], { cwd: stage.workspace.path });
    await stage.workspace.files({ "a/.git": "gitdir: ../store/deep\n", "b/.git": "gitdir: ../store/deep\n" });
    const { output } = await stage.run(
      "echo x > store/deep/config; echo x > store/deep/hooks/post-checkout; echo done",
    );
    expect(output).toMatch(/Read-only file system\n.*Read-only file system\ndone\n$/s);
  });
});
