/** Names in a workspace that commands can neither read nor change, wherever they stand. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const CANARY = "canary-5150";

describe.runIf(works)("in the sandbox", () => {
  it(".env files are hidden however deep they lie, and what a link of that name leads to", async () => {
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

  it("what an editor or a shell runs in a folder below cannot be changed", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    await workspace.files({ "below/.vscode/tasks.json": "mine", "below/.envrc": "mine" });
    const command = "echo x > below/.vscode/tasks.json; echo x > below/.envrc; mv below/.vscode below/away; echo done";
    expect((await stage.run(command)).output).toMatch(/done\n$/);
    const kept = ["below/.vscode/tasks.json", "below/.envrc"].map((path) => workspace.read(path));
    expect(await Promise.all(kept)).toEqual(["mine", "mine"]);
  });

  it("what only holds text beside protected names can be made, and nothing else is left behind", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    const command = "mkdir -p .github/workflows && echo ci > .github/workflows/ci.yml && echo done";
    expect((await stage.run(command)).output).toBe("done\n");
    expect([readdirSync(workspace.path), readdirSync(workspace.at(".github"))]).toEqual([[".github"], ["workflows"]]);
  });

  it("a repository whose git folder lacks an info folder works, and gets none", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    spawnSync("git", ["init", "-q", "."], { cwd: workspace.path });
    rmSync(workspace.at(".git/info"), { recursive: true, force: true });
    const { output } = await stage.run("git status --short && echo x > .git/info/attributes; echo done");
    expect(output).toMatch(/Read-only file system\ndone\n$/);
    expect(existsSync(workspace.at(".git/info"))).toBe(false);
  });

  it("a workspace that is too large to be searched is told of once", async () => {
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const files = Array.from({ length: 900 }, (_, index) => [`f${index % 30}/.env.${index}`, ""]);
    await stage.workspace.files(Object.fromEntries(files));
    await stage.run("true");
    await stage.run("true");
    expect(warnings).toEqual([expect.stringMatching(/is too large to be searched whole.*deniedPaths/)]);
  });
});
