/** Files that commands must not read stay hidden under load and after commands that change the workspace. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { HIDDEN_IN_HOME } from "../../src/tools/shell/sandbox/sandbox-hidden.ts";
import { createShells } from "../../src/tools/shell/session-shells.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const CANARY = "canary-90c1";
const USER = "65534";
const asUser = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups", "--inh-caps=-all"];
/** Root can read every folder, so an unreadable one needs another user. */
const isRoot = process.getuid?.() === 0;
const canBeUser = !isRoot || spawnSync("setpriv", [...asUser.slice(1), process.execPath, "-v"]).status === 0;

/** Busy processes beside the command, and how often it runs. They take time from every other test of the run. */
const LOAD = process.env.TROUPE_SLOW === undefined ? { processes: 2, attempts: 2 } : { processes: 8, attempts: 6 };

describe.runIf(works)(".env files", () => {
  it(".env files stay hidden in a large workspace while the machine is busy", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    for (let index = 0; index < 3000; index++)
      mkdirSync(stage.workspace.at(`f${index % 60}/g${index % 7}/h${index}`), { recursive: true });
    const secret = "f59/g6/h2939/deep/below/.env";
    await stage.workspace.files({ [secret]: CANARY });
    const busy: ChildProcess[] = Array.from({ length: LOAD.processes }, () =>
      spawn("sh", ["-c", "while :; do :; done"]),
    );
    try {
      for (let attempt = 0; attempt < LOAD.attempts; attempt++) {
        const { output } = await stage.run(`cat ${secret}; echo done`, { waitMs: 60_000 });
        expect(output).toMatch(/Permission denied\ndone\n$/);
      }
    } finally {
      for (const child of busy) child.kill("SIGKILL");
    }
  });

  it.each(["plain", "node_modules/x/plain", "$(printf 'd\\377')/plain", "$(printf 'p\\377')"])(
    ".env files are hidden under the name %s too, which a command gave them",
    async (name) => {
      await using stage = await shellStage({ sandboxed: {} });
      spawnSync("git", ["init", "-q", "."], { cwd: stage.workspace.path });
      await stage.run(`touch .env; mkdir -p "$(dirname "${name}")"; ln .env "${name}"`);
      writeFileSync(stage.workspace.at(".env"), CANARY);
      const { output } = await stage
        .run(`cat .env "${name}"; grep -rs ${CANARY} . ; echo done`)
        .catch((error: Error) => ({ output: error.message }));
      expect(output).not.toContain(CANARY);
      expect(output).toMatch(/Permission denied\n.*Permission denied\ndone\n$|Nothing was run/s);
    },
  );

  const SECRETS = { "app/config/.env": CANARY, "app/.env.local": CANARY, ".env": CANARY };
  const search = `cat ${Object.keys(SECRETS).join(" ")} 2>/dev/null; grep -rs ${CANARY} . ; echo done`;

  it.each([
    "mkdir -p node_modules; mv app node_modules/app",
    "mkdir -p node_modules; mv app/config node_modules/config",
    "mv app .git/app",
    "mv app/config .git/config2; mv app/.env.local .git/plain",
    "mv app other; mv app/config other; mv .env plain; mv app/config/.env plain2",
    "ln app/config/.env hard; cp app/config/.env copy; ln -s app/config link; mv app/config app/config2",
    "mkdir away && mv app away/ ; mkdir app; mv .env .env.example; mv app/config/.env app/config/.env.example",
    "mkdir -p .github/x .vscode; mv app .github/x; mv app .vscode/",
    'python3 -c \'import os; os.rename("app", "renamed")\'; rmdir app; rm -rf app',
  ])(".env files stay hidden from the next command after: %s", async (command) => {
    await using stage = await shellStage({ sandboxed: {} });
    spawnSync("git", ["init", "-q", "."], { cwd: stage.workspace.path });
    await stage.workspace.files({ ...SECRETS, "app/source.txt": "text" });
    await stage.run(`(${command}) 2>/dev/null; true`);
    expect((await stage.run(search)).output).toBe("done\n");
    expect(
      (await stage.run("grep -rs canary . ; cat .env plain hard copy link/.env 2>/dev/null; echo done")).output,
    ).toBe("done\n");
    const open = spawnSync("sh", ["-c", search], { cwd: stage.workspace.path, encoding: "utf8" });
    expect(open.stdout, "without the sandbox").toContain(CANARY);
  });

  it.each(["rm app/.env", "mv app/.env app/plain", "mkdir x; mv app x", "ln -sf /dev/null app/.env"])(
    ".env files stay hidden under another name, also after a restart, when their link is destroyed: %s",
    async (command) => {
      const warnings: string[] = [];
      await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
      await stage.workspace.files({ "values/live": CANARY, "app/source.txt": "text" });
      symlinkSync("../values/live", stage.workspace.at("app/.env"));
      await stage.run(command);
      const look =
        "cat values/live; mv values/live shown; cat shown; mv values v2; cat v2/live; grep -rs canary . ; echo done";
      expect((await stage.run(look)).output).not.toContain(CANARY);
      expect(warnings.join()).toContain("values/live stays hidden from commands");
      const { path } = stage.workspace;
      const sandbox = createSandbox({ mode: "required", stateRoot: stage.state.path });
      const shells = createShells({ folder: stage.state.at("other"), sandbox });
      const request = { cwd: path, roots: [path], mode: "sync" as const, waitMs: 20_000 };
      const again = await shells.run({ ...request, command: look, signal: new AbortController().signal });
      await shells.closeAll();
      await sandbox.close();
      expect(again.output).not.toContain(CANARY);
      expect(await stage.workspace.read("values/live")).toBe(CANARY);
    },
  );

  it.runIf(canBeUser)(".env files stay hidden in a folder that a command made unreadable for the search", async () => {
    await using folder = await tempFolder();
    const host = folder.at("host.mjs");
    const source = `
      import { createSandbox } from "./src/tools/shell/sandbox/sandbox.ts";
      import { createShells } from "./src/tools/shell/session-shells.ts";
      const [workspace, state, ...commands] = process.argv.slice(2);
      const sandbox = createSandbox({ mode: "required", stateRoot: state });
      const shells = createShells({ folder: state + "/files", sandbox, terminals: false });
      const request = { cwd: workspace, roots: [workspace], mode: "sync", waitMs: 60000, signal: new AbortController().signal };
      const outputs = [];
      for (const command of commands) outputs.push((await shells.run({ ...request, command })).output);
      await shells.closeAll();
      await sandbox.close();
      console.log(JSON.stringify(outputs));`;
    const stdin = { contents: source, resolveDir: process.cwd(), loader: "ts" } as const;
    const external = ["@lydell/node-pty"];
    await build({ stdin, outfile: host, bundle: true, platform: "node", format: "esm", external, logLevel: "error" });
    await folder.files({ "workspace/app/config/.env": CANARY, "workspace/plain": "plain" });
    mkdirSync(folder.at("state"));
    if (isRoot) spawnSync("chown", ["-R", `${USER}:${USER}`, folder.path]);
    const read = "chmod -R u+rwX . 2>/dev/null; cat app/config/.env plain 2>/dev/null; grep -rs canary .; echo; true";
    const commands = ["chmod 000 app/config", read, "chmod 311 app", read, read];
    const [file = "", ...args] = [
      ...(isRoot ? asUser : []),
      process.execPath,
      host,
      folder.at("workspace"),
      folder.at("state"),
    ];
    const run = spawnSync(file, [...args, ...commands], {
      encoding: "utf8",
      cwd: "/",
      env: { PATH: process.env.PATH, HOME: folder.path },
    });
    expect(run.stderr).toBe("");
    const outputs: string[] = JSON.parse(run.stdout);
    expect(outputs.join("")).not.toContain(CANARY);
    expect(outputs[1]).toBe("plain\n");
    const control = spawnSync("sh", ["-c", read], { cwd: folder.at("workspace"), encoding: "utf8" });
    expect(control.stdout, "without the sandbox").toContain(CANARY);
  });
});

describe.runIf(works)("credentials in the home folder", () => {
  it.each(["files", "folders"])(
    "credentials in the home folder are hidden, every entry of the list, as %s",
    async (kind) => {
      await using home = await tempFolder();
      const paths = HIDDEN_IN_HOME.map((name) => home.at(kind === "files" ? name : join(name, "inside")));
      for (const [index, path] of paths.entries()) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, `${CANARY} ${HIDDEN_IN_HOME[index]}\n`);
      }
      writeFileSync(home.at("plain"), "plain\n");
      // Writable, because otherwise it would be hidden whole, together with all temporary folders.
      await using stage = await shellStage({ sandboxed: { home: home.path, writable: [home.path] } });
      const list = [...paths, home.at("plain")].map((path) => `'${path}'`).join(" ");
      const command = `cat ${list} 2>/dev/null; grep -rsh ${CANARY} '${home.path}'; true`;
      expect((await stage.run(command, { waitMs: 60_000 })).output).toBe("plain\n");
      const open = spawnSync("sh", ["-c", `cat ${list}`], { encoding: "utf8" }).stdout;
      expect(open.split("\n").filter((line) => line.startsWith(CANARY))).toHaveLength(HIDDEN_IN_HOME.length);
    },
  );
});

describe.runIf(works)("a read-only workspace", () => {
  it("a read-only workspace can be read, also by git, and nothing in it can be written", async () => {
    await using folder = await tempFolder();
    await using state = await tempFolder();
    const git = (...args: string[]): unknown =>
      spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder.path });
    await folder.files({ file: "text\n", "app/.env": CANARY, "lib/x": "x", "node_modules/p/x": "x" });
    git("init", "-q", ".");
    git("add", "file");
    git("commit", "-qm", "one");
    git("init", "-q", "lib");
    await folder.files({ file: "changed\n" });
    const before = await folder.tree();
    const sandbox = createSandbox({ mode: "required", stateRoot: state.path });
    const place = { workspace: [folder.path], cwd: folder.path, ownTerminal: false, detached: false };
    const prepared = await sandbox.prepare({ ...place, readOnlyWorkspace: true });
    if (prepared.kind !== "sandboxed") throw new Error("there is no sandbox");
    const writes = [
      ...[
        "echo x > new",
        "echo x >> file",
        "rm file",
        "mv file other",
        "mkdir d",
        "ln -s a l",
        "chmod 777 file",
        "touch -d @1 file",
      ],
      ...[
        "echo x > app/new",
        "mv app b",
        "rm -f app/.env",
        "echo x > lib/x",
        "echo x > lib/.git/config",
        "git init -q made",
      ],
      ...[
        "echo x > .git/HEAD",
        "echo x > .git/refs/heads/x",
        "echo x > .git/info/x",
        "git add file",
        "git commit -qam x",
        "git config a.b c",
      ],
      ...[
        "echo x > .vscode",
        "mkdir -p .github/workflows",
        "echo x > node_modules/p/x",
        "touch .mcp.json",
        "mount -o remount,rw .",
      ],
    ];
    const script = `exec 2>/dev/null
      ${writes.map((write) => `(${write}) && echo 'SUCCEEDED ${write}'`).join("\n")}
      cat file app/.env; git status --porcelain file; git log --oneline | wc -l; echo x > /tmp/own && cat /tmp/own`;
    const [file = "", ...args] = [...prepared.launcher, "bash", "--noprofile", "--norc", "-c", script];
    const run = spawnSync(file, args, { cwd: folder.path, encoding: "utf8" });
    expect(await prepared.release()).toBeUndefined();
    await sandbox.close();
    expect(run.stdout).toBe("changed\n M file\n1\nx\n");
    expect(await folder.tree()).toEqual(before);
    expect(existsSync(folder.at(".vscode"))).toBe(false);
  });
});
