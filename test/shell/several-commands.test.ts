/** What one command prepares for another, and what mounts of one command do to each other. */
import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { hostFolder } from "./host.ts";
import { PlantedWorkspace } from "./planted-repositories.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const EVIL = "printf '[core]\\n\\tfsmonitor = false\\n'";

describe.runIf(works)("commands in the sandbox", () => {
  it("sandboxed commands cannot take over a repository that a still running command creates", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { shellId } = await stage.run("git init -q n; read -r line; mv n/.git/config n/.git/was", { mode: "async" });
    await expect.poll(() => stage.run("cat n/.git/config").then(({ output }) => output)).toContain("[core]");
    const later = stage.run(
      `touch second; until [ -e third ]; do sleep 0.05; done; ${EVIL} > n/.git/config; cat n/.git/config`,
    );
    await expect.poll(() => stage.run("ls").then(({ output }) => output)).toContain("second");
    await stage.shells.write({ shellId, input: "go{enter}", waitMs: 5000, signal: new AbortController().signal });
    writeFileSync(stage.workspace.at("third"), "");
    expect((await later).output).toContain("fsmonitor");
    const names = readdirSync(stage.workspace.at("n/.git")).filter((name) => name.startsWith("config"));
    expect(names).toEqual([expect.stringMatching(/^config\.blocked-/)]);
  });

  it("sandboxed commands cannot change a git folder inside .git that a .git file below leads to", async () => {
    await using folder = await tempFolder();
    const { path } = new PlantedWorkspace(folder.path);
    await using stage = await shellStage({ sandboxed: {} });
    const place = { cwd: path, roots: [path] };
    await stage.run("git init -q --bare .git/other; mkdir n; echo 'gitdir: ../.git/other' > n/.git", place);
    await stage.run(`${EVIL} >> .git/other/config; mv .git/other .git/away`, place);
    expect(readFileSync(join(path, ".git/other/config"), "utf8")).not.toContain("fsmonitor");
  });

  it("sandboxed commands cannot change the configuration of a repository whose linked worktree lies beside it", async () => {
    await using folder = await tempFolder();
    const { path } = new PlantedWorkspace(folder.path);
    const base = folder.at("both");
    mkdirSync(base);
    spawnSync("git", ["clone", "-q", path, join(base, "main")]);
    spawnSync("git", ["worktree", "add", "-q", join(base, "linked")], { cwd: join(base, "main") });
    await using stage = await shellStage({ sandboxed: {} });
    const place = { cwd: base, roots: [base] };
    expect((await stage.run("git -C linked status -s && echo works", place)).output).toBe("works\n");
    await stage.run(`${EVIL} >> main/.git/config`, place);
    expect(readFileSync(join(base, "main/.git/config"), "utf8")).not.toContain("fsmonitor");
  });

  it("sandboxed commands cannot write into protected folders through mounts, nor read .env files in them", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files({
      ".github/hooks/deep/.env": "SECRET=one",
      ".github/hooks/deep/run.sh": "kept",
      ".claude/hooks/deep/n/.git/HEAD": "ref: refs/heads/main",
      ".vscode/deep/.env": "SECRET=two",
    });
    const reply = await stage.run(
      "echo x > .github/hooks/deep/run.sh; echo x > .claude/hooks/deep/x; echo x > .claude/hooks/deep/n/x; cat .vscode/deep/.env",
    );
    expect(reply.output).not.toContain("SECRET");
    expect(await stage.workspace.tree()).toEqual({
      ".github/hooks/deep/.env": "SECRET=one",
      ".github/hooks/deep/run.sh": "kept",
      ".claude/hooks/deep/n/.git/HEAD": "ref: refs/heads/main",
      ".vscode/deep/.env": "SECRET=two",
    });
  });

  it("sandboxed commands get no mount on a folder that a running command can swap for a link", async () => {
    await using workspace = await tempFolder({ "old/.env": "SECRET=one" });
    await using state = await tempFolder();
    const sandbox = createSandbox({ mode: "required", stateRoot: state.path });
    const request = { workspace: [workspace.path], cwd: workspace.path, ownTerminal: false, detached: false };
    const running = await sandbox.prepare(request);
    spawnSync("git", ["init", "-q", "new/n"], { cwd: workspace.path });
    await workspace.files({ "new/.env": "SECRET=two" });
    const next = await sandbox.prepare(request);
    if (running.kind !== "sandboxed" || next.kind !== "sandboxed") throw new Error("no sandbox");
    const writable = next.launcher.filter((_, index) => next.launcher[index - 1] === "--bind");
    expect(writable).toContain(workspace.at("old"));
    expect(writable.filter((path) => path.startsWith(workspace.at("new")))).toEqual([]);
    expect(next.launcher).toContain(workspace.at("new/.env"));
    await running.release();
    await next.release();
    await sandbox.close();
  });

  it("sandboxed commands find protected links again in the next sandbox while another one runs", async () => {
    await using workspace = await tempFolder({ "sub/conf/settings.json": "{}" });
    await using state = await tempFolder();
    symlinkSync("conf", workspace.at("sub/.vscode"));
    const sandbox = createSandbox({ mode: "required", stateRoot: state.path });
    const request = { workspace: [workspace.path], cwd: workspace.path, ownTerminal: false, detached: false };
    const running = await sandbox.prepare(request);
    const next = await sandbox.prepare(request);
    if (running.kind !== "sandboxed" || next.kind !== "sandboxed") throw new Error("no sandbox");
    expect(next.left.links.map(({ path }) => path)).toEqual([workspace.at("sub/.vscode")]);
    expect(next.launcher.filter((_, index) => next.launcher[index - 1] === "--ro-bind")).toContain(
      workspace.at("sub/conf"),
    );
    await running.release();
    await next.release();
    await sandbox.close();
  });

  it.each(["", "sub/"])(
    "sandboxed commands cannot write where a link led, in '%s', while a running command turns the link",
    async (below) => {
      await using stage = await shellStage({ sandboxed: {} });
      const { workspace } = stage;
      mkdirSync(workspace.at(`${below}conf`), { recursive: true });
      symlinkSync("conf", workspace.at(`${below}.vscode`));
      const link = `'${workspace.at(`${below}.vscode`)}'`;
      const { shellId } = await stage.run(
        `rm ${link}; ln -s /etc ${link}; echo turned; read -r line; rm -f ${link}; ln -s conf ${link}; echo back`,
        { mode: "async" },
      );
      await expect.poll(() => stage.wait(shellId, 0).then(({ output }) => output)).toContain("turned");
      const { output } = await stage.run(`echo evil > ${below}conf/tasks.json; touch ${below}other; ls ${below}`);
      await stage.shells.write({ shellId, input: "go{enter}", waitMs: 20_000, signal: new AbortController().signal });
      expect(readdirSync(workspace.at(`${below}conf`))).toEqual([]);
      expect(output).toContain("other");
    },
  );

  it("sandboxed commands run after the state folder was emptied", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    expect((await stage.run("echo one")).output).toBe("one\n");
    for (const name of readdirSync(stage.state.path)) rmSync(stage.state.at(name), { recursive: true });
    expect((await stage.run("echo two")).output).toBe("two\n");
  });

  it("sandboxed commands get no descriptor that was open where troupe was started", async () => {
    await using program = await hostFolder();
    await using base = await tempFolder();
    for (const name of ["workspace", "state"]) mkdirSync(base.at(name));
    const list = "cd /proc/self/fd; echo * > ~1/seen; mv ~1/seen ~1/open";
    const fd = openSync(base.path, "r");
    // The descriptors have these numbers in the host, and Node keeps none of them to itself.
    const host = spawn(
      process.execPath,
      [program.at("host.mjs"), base.path, "1", "required", "x", `pushd . > /dev/null; ${list}`],
      { stdio: ["ignore", "ignore", "inherit", fd, fd, fd] },
    );
    closeSync(fd);
    await expect.poll(() => existsSync(base.at("workspace/open"))).toBe(true);
    expect(host.kill("SIGKILL")).toBe(true);
    const open = readFileSync(base.at("workspace/open"), "utf8").trim().split(" ");
    // 3 is the listing of the folder, and 255 the script of bash.
    expect(open.filter((name) => !["0", "1", "2", "3", "255"].includes(name))).toEqual([]);
  });

  it.each(["hooks", "info/attributes"])(
    "sandboxed commands do not run when %s of a nested repository becomes a link meanwhile",
    async (name) => {
      await using workspace = await tempFolder({ "secret/.env": "SECRET=one" });
      await using state = await tempFolder();
      spawnSync("git", ["init", "-q", "n"], { cwd: workspace.path });
      writeFileSync(workspace.at("n/.git/info/attributes"), "");
      const sandbox = createSandbox({ mode: "required", stateRoot: state.path });
      const request = { workspace: [workspace.path], cwd: workspace.path, ownTerminal: false, detached: false };
      const prepared = await sandbox.prepare(request);
      if (prepared.kind !== "sandboxed") throw new Error("no sandbox");
      const [program = "", ...rest] = [...prepared.launcher, "echo", "ran"];
      const run = (): string => spawnSync(program, rest, { encoding: "utf8" }).stdout;
      expect(run()).toBe("ran\n");
      const place = workspace.at(`n/.git/${name}`);
      renameSync(place, `${place}-was`);
      symlinkSync(name === "hooks" ? "../../secret" : "../../../secret/.env", place);
      expect(run()).not.toContain("ran");
      await prepared.release();
      await sandbox.close();
    },
  );
});
