/** Ways around the protected names that need neither a race nor a hostile repository: each is one or two commands. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const CANARY = "canary-9a3b";

const git = (cwd: string, ...args: string[]): string =>
  spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", ...args], {
    cwd,
    encoding: "utf8",
  }).stdout;

/** A stage with a repository, and a folder in which a program that git runs on the host leaves a file. */
async function repositoryStage(options: Parameters<typeof shellStage>[0] = { sandboxed: {} }) {
  const stage = await shellStage(options);
  const traces = await tempFolder();
  await stage.workspace.files({ "src/file": "text" });
  git(stage.workspace.path, "init", "-q");
  git(stage.workspace.path, "add", "src");
  git(stage.workspace.path, "commit", "-qm", "one");
  const monitor = `git config core.fsmonitor 'touch ${traces.at("ran")}; false'`;
  return {
    stage,
    monitor,
    /** Whether `git status` in a folder of the workspace runs a program of the command. */
    runsSomething(folder = "."): boolean {
      git(stage.workspace.at(folder), "status");
      return readdirSync(traces.path).length > 0;
    },
    async [Symbol.asyncDispose]() {
      await stage[Symbol.asyncDispose]();
      await traces.remove();
    },
  };
}

describe.runIf(works)("git on the host", () => {
  it("git on the host runs no program from a folder that takes its configuration from another one", async () => {
    await using on = await repositoryStage();
    const program = on.monitor.replace("core.fsmonitor", "core.sshCommand");
    await on.stage.run(
      `git init -q store && cd store && ${program} && cd .. && mkdir evil half && cp store/.git/HEAD evil/ &&
      mv store/.git/objects store/.git/refs store/.git/config half/ && rm -r store && echo ../half > evil/commondir`,
    );
    expect(existsSync(on.stage.workspace.at("evil/HEAD"))).toBe(true);
    git(on.stage.workspace.at("evil"), "fetch", "ssh://localhost/nothing");
    expect(on.runsSomething()).toBe(false);
  });

  it("git on the host runs no program from a folder outside the workspace that a .git file leads to", async () => {
    const cache = await tempFolder();
    await using on = await repositoryStage({ sandboxed: { writable: [cache.path] } });
    await on.stage.run(
      `git init -q ${cache.at("g")} && cd ${cache.at("g")} && ${on.monitor} && cd - &&
      mkdir lib && echo 'gitdir: ${cache.at("g/.git")}' > lib/.git && git add lib`,
    );
    expect(existsSync(cache.at("g/.git/config"))).toBe(true);
    expect(on.runsSomething("lib")).toBe(false);
    await cache.remove();
  });

  it("git on the host runs no program from a repository in a folder whose name is not valid UTF-8", async () => {
    await using on = await repositoryStage();
    await on.stage.run(`mkdir $'x\\xff' && cd $'x\\xff' && git init -q . && touch f && ${on.monitor}`);
    const folder = readdirSync(on.stage.workspace.path).find((name) => name.startsWith("renamed-"));
    expect(folder).toBeDefined();
    expect(on.runsSomething(folder)).toBe(false);
  });

  it("git on the host runs no program from an indexed repository among packages that is configured later", async () => {
    await using on = await repositoryStage();
    const make = "mkdir -p node_modules/x && cd node_modules/x && git init -q . && git commit -q --allow-empty -m x";
    const identity = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
    await on.stage.run(`${identity}; ${make} && cd ../.. && git add -f node_modules/x`);
    await on.stage.run(`cd node_modules/x && ${on.monitor}`);
    expect(on.runsSomething()).toBe(false);
  });

  it("git on the host runs no program from an older repository among packages that is configured later", async () => {
    await using on = await repositoryStage();
    const folder = on.stage.workspace.at("node_modules/x");
    mkdirSync(folder, { recursive: true });
    git(folder, "init", "-q");
    git(folder, "commit", "-q", "--allow-empty", "-m", "x");
    await new Promise((resolve) => setTimeout(resolve, 30));
    const program = on.monitor.slice("git config core.fsmonitor ".length).replaceAll("'", '"');
    await on.stage.run(
      `printf '[core]\\n\\tfsmonitor = %s\\n' '${program}' >> node_modules/x/.git/config; git add -f node_modules/x`,
    );
    expect(on.runsSomething()).toBe(false);
  });

  it("git on the host runs no program from the submodule of a linked worktree", async () => {
    await using on = await repositoryStage();
    await using other = await tempFolder();
    git(on.stage.workspace.path, "submodule", "add", "-q", on.stage.workspace.path, "sub");
    git(on.stage.workspace.path, "commit", "-qm", "two");
    git(on.stage.workspace.path, "worktree", "add", "-q", other.at("tree"));
    git(other.at("tree"), "submodule", "update", "-q", "--init");
    const cwd = other.at("tree");
    const { output } = await on.stage.run(`cd sub && ${on.monitor}; git status --short && echo works`, {
      cwd,
      roots: [cwd],
    });
    expect(output).toMatch(/works\n$/);
    expect(git(other.at("tree/sub"), "config", "core.fsmonitor")).toBe("");
  });
});

describe.runIf(works)("a command", () => {
  it("a sandboxed command cannot have the user's repository disarmed by a .git file that leads to it", async () => {
    await using on = await repositoryStage();
    const { workspace } = on.stage;
    git(workspace.path, "config", "credential.helper", "mine");
    writeFileSync(workspace.at(".git/hooks/pre-commit"), "mine");
    await on.stage.run(
      "mkdir x y && echo 'gitdir: ../.git' > x/.git && git init -q y && echo ../../.git > y/.git/commondir",
    );
    expect(git(workspace.path, "config", "credential.helper")).toBe("mine\n");
    expect(await workspace.read(".git/hooks/pre-commit")).toBe("mine");
  });

  it("a sandboxed command cannot change settings of agents in a folder below", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    await workspace.files({
      "a/.claude/settings.json": "mine",
      "a/.github/hooks/x.json": "mine",
      "b/.claude/note": "",
    });
    symlinkSync("../b", workspace.at("a/.vscode"));
    const command = `echo x > a/.claude/settings.json; echo x > a/.github/hooks/x.json; echo x > b/.claude/settings.json
      mv a/.claude c; ln -s /tmp d; echo x > a/.claude/note; echo done`;
    expect((await stage.run(command)).output).toMatch(/done\n$/);
    expect([await workspace.read("a/.claude/settings.json"), await workspace.read("a/.github/hooks/x.json")]).toEqual([
      "mine",
      "mine",
    ]);
    expect(existsSync(workspace.at("b/.claude/settings.json"))).toBe(false);
    expect(await workspace.read("a/.claude/note")).toBe("x\n");
  });

  it.each([
    ["a folder that is partly writable", ".vscode", ".github", {}],
    [
      "a folder with a repository in it",
      "a/.vscode",
      "conf",
      { "conf/x/.git/HEAD": "ref: refs/heads/main\n", "a/f": "" },
    ],
    ["a folder with a hidden path in it", ".vscode", "conf", { "conf/secret/file": "" }],
  ] as const)("a sandboxed command cannot write through a protected link to %s", async (_, link, target, files) => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    await workspace.files({ [`${target}/tasks.json`]: "mine", ...files });
    symlinkSync(workspace.at(target), workspace.at(link));
    const denied = [workspace.at("conf/secret")].filter((path) => existsSync(path));
    await using strict = await shellStage({ sandboxed: { denied } });
    const { path: cwd } = workspace;
    await strict.run(`echo x > ${target}/tasks.json; echo x > ${target}/other`, { cwd, roots: [cwd] });
    expect(await workspace.read(`${target}/tasks.json`)).toBe("mine");
    expect(existsSync(workspace.at(`${target}/other`))).toBe(false);
  });

  it("a sandboxed command does not run where a protected name is a link to the workspace itself", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    symlinkSync(".", stage.workspace.at(".vscode"));
    await expect(stage.run("touch tasks.json")).rejects.toThrow(
      /\.vscode is a link to the workspace itself.*Nothing was run/,
    );
    expect(existsSync(stage.workspace.at("tasks.json"))).toBe(false);
  });

  it("a sandboxed command runs where the info folder of a repository is a link or a file", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { workspace } = stage;
    await workspace.files({
      ".git/HEAD": "ref: refs/heads/main\n",
      "x/.git/HEAD": "",
      "x/.git/info": "text",
      "conf/attributes": "mine",
    });
    symlinkSync("../conf", workspace.at(".git/info"));
    expect((await stage.run("echo x > conf/attributes; echo done")).output).toMatch(/done\n$/);
    expect(await workspace.read("conf/attributes")).toBe("mine");
  });

  it("a sandboxed command cannot read .env files in protected folders", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files({ ".vscode/.env": CANARY, "a/.idea/deep/.env": CANARY, ".vscode/deep/x": "" });
    const { output } = await stage.run("cat .vscode/.env a/.idea/deep/.env; echo x > .vscode/deep/x; echo done");
    expect(output).not.toContain(CANARY);
    expect(await stage.workspace.read(".vscode/deep/x")).toBe("");
  });

  it("a sandboxed command does not run where a name that is not valid UTF-8 leads to a .env file", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const folder = Buffer.concat([Buffer.from(`${stage.workspace.path}/x`), Buffer.from([0xff])]);
    mkdirSync(folder);
    expect((await stage.run("echo fine")).output).toBe("fine\n");
    writeFileSync(Buffer.concat([folder, Buffer.from("/.env")]), CANARY);
    await expect(stage.run("cat */.env")).rejects.toThrow(/not valid UTF-8.*Nothing was run/);
  });

  it("a sandboxed command cannot change protected names where a folder around the workspace is writable", async () => {
    await using around: TempFolder = await tempFolder();
    await around.files({ "work/.vscode/tasks.json": "mine", "work/.env": CANARY, file: "" });
    await using stage = await shellStage({ sandboxed: { writable: [around.path, around.at("work/.vscode")] } });
    const cwd = around.at("work");
    const { output } = await stage.run("cat .env; echo x > .vscode/tasks.json; echo x > ../file", {
      cwd,
      roots: [cwd],
    });
    expect(output).not.toContain(CANARY);
    expect([await around.read("work/.vscode/tasks.json"), await around.read("file")]).toEqual(["mine", "x\n"]);
  });

  it("a sandboxed command cannot create files that start programs in a home folder that is the workspace", async () => {
    await using home = await tempFolder();
    await using link = await tempFolder();
    symlinkSync(home.path, link.at("home"));
    await using stage = await shellStage({ sandboxed: { home: link.at("home") } });
    const command = `mkdir -p .ssh .config/git .config/x; echo x > .ssh/authorized_keys; echo x > .config/git/config
      mv .config c; mkdir -p .config/git; echo x > .config/git/config; echo x > .bashrc; echo x > .config/x/y`;
    await stage.run(command, { cwd: home.path, roots: [home.path] });
    expect(readdirSync(home.path)).toEqual([".config"]);
    expect(readdirSync(home.at(".config"))).toEqual(["x"]);
  });
});
