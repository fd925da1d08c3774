import { spawn, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { childEnvironment } from "../../src/lib/node/child-environment.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox, type SandboxOptions } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const NOBODY = "65534";
const asNobody = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--inh-caps=-all"];
const canBeNobody = process.getuid?.() === 0 && spawnSync("setpriv", [...asNobody.slice(1), "true"]).status === 0;
if (!canBeNobody) console.log("skipped, the sandbox as an ordinary user: needs root and setpriv");
const CANARY = "canary-5f2e";

let workspace: TempFolder;
let outside: TempFolder;
let state: TempFolder;

/** Runs an attack in the sandbox or, to show that it would succeed, without it. */
async function attack(
  command: string,
  how: { user: readonly string[]; sandboxed: boolean } & Partial<SandboxOptions>,
): Promise<{ code: number | null; output: string }> {
  const { user, sandboxed, ...options } = how;
  const sandbox = createSandbox({ mode: "required", stateRoot: state.path, home: outside.path, ...options });
  const place = { workspace: [workspace.path], cwd: workspace.path, ownTerminal: false, detached: false };
  const own = (id: string): void => void spawnSync("chown", ["-R", `${id}:${id}`, workspace.path, outside.path]);
  if (user.length > 0) own("0"); // prepared by this process, which refuses the folders of others
  const prepared = sandboxed ? await sandbox.prepare(place) : undefined;
  if (user.length > 0) own(NOBODY);
  const launcher = prepared?.kind === "sandboxed" ? prepared.launcher : [];
  for (const path of [state.path, state.at("sandbox")]) if (existsSync(path)) chmodSync(path, 0o755);
  for (const name of sandboxed ? readdirSync(state.at("sandbox")) : []) chmodSync(state.at(`sandbox/${name}`), 0o644);
  const [file = "", ...rest] = [...user, ...launcher, "bash", "--noprofile", "--norc", "-c", `exec 2>&1\n${command}`];
  const environment = { ...childEnvironment(process.env), OUT: outside.path, HOME: outside.path };
  // Not waiting in a blocking call: the canary servers live in this process.
  const child = spawn(file, rest, {
    cwd: workspace.path,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 120_000,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (prepared?.kind === "sandboxed") await prepared.release();
  await sandbox.close();
  return { code, output };
}

beforeEach(async () => {
  [workspace, outside, state] = await Promise.all([tempFolder(), tempFolder(), tempFolder()]);
  return async () => {
    await Promise.all([workspace, outside, state].map((folder) => folder.remove()));
  };
});

const users = [
  { name: "the current user", user: [] as string[], runs: works },
  { name: "an ordinary user", user: asNobody, runs: works && canBeNobody },
];

describe.each(users)("the sandbox as $name", ({ user, runs }) => {
  const sandboxed = { user, sandboxed: true };
  const control = { user, sandboxed: false };

  it.runIf(runs)("D01 the sandbox keeps a command from writing outside, also after a remount", async () => {
    const command = 'mount -o remount,rw,bind / ; mount -o remount,rw / ; echo x > "$OUT/pwned"; echo y > inside';
    await attack(command, control);
    expect(existsSync(outside.at("pwned"))).toBe(true);
    spawnSync("rm", ["-f", outside.at("pwned"), workspace.at("inside")]);
    await attack(command, sandboxed);
    expect(existsSync(outside.at("pwned"))).toBe(false);
    expect(await workspace.read("inside")).toBe("y\n");
  });

  it.runIf(runs)("D02 the sandbox shows no other process's environment", async () => {
    const [file = "", ...rest] = [...user, "sleep", "60"];
    const victim = spawn(file, rest, { env: { ...process.env, SECRET: CANARY } });
    const command = `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c ${CANARY}`;
    try {
      await expect.poll(async () => Number((await attack(command, control)).output)).toBeGreaterThan(0);
      expect(Number((await attack(command, sandboxed)).output)).toBe(0);
    } finally {
      victim.kill("SIGKILL");
    }
  });

  it.runIf(runs)("D03 the sandbox reaches no Unix socket, named or abstract", async () => {
    let connections = 0;
    const named = await listening(workspace.at("host.sock"), () => connections++);
    const abstract = await listening(`\0${CANARY}${process.pid}`, () => connections++);
    chmodSync(workspace.at("host.sock"), 0o777);
    const script = `for (const path of [${JSON.stringify(workspace.at("host.sock"))}, "\\0${CANARY}${process.pid}"])
      require("net").connect(path).on("error", (error) => console.log(error.code)).on("connect", function () { this.end() })`;
    writeFileSync(workspace.at("attack.cjs"), script);
    const command = `'${process.execPath}' attack.cjs`;
    try {
      if (user.length === 0) {
        await attack(command, control);
        expect(connections).toBe(2);
      }
      connections = 0;
      await attack(command, sandboxed);
      expect(connections).toBe(0);
    } finally {
      named.close();
      abstract.close();
    }
  });

  it.runIf(runs)("D04 the sandbox reaches no network, not even this machine", async () => {
    let heard = 0;
    const tcp = await listening(0, () => heard++);
    const udp = createSocket("udp4", () => heard++);
    await new Promise<void>((resolve) => udp.bind(0, "127.0.0.1", resolve));
    const address = tcp.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const command = `echo x > /dev/tcp/127.0.0.1/${port}; echo x > /dev/udp/127.0.0.1/${udp.address().port}
      curl -s --max-time 2 --noproxy '*' http://127.0.0.1:${port}/ ; sleep 0.1`;
    try {
      await attack(command, control);
      await expect.poll(() => heard).toBeGreaterThanOrEqual(2);
      heard = 0;
      await attack(command, { ...sandboxed, network: true });
      await expect.poll(() => heard, { message: "allowed" }).toBeGreaterThanOrEqual(2);
      heard = 0;
      await attack(command, sandboxed);
      expect(heard).toBe(0);
    } finally {
      tcp.close();
      udp.close();
    }
  });

  // Those that destroy the repository come last.
  const writes = [
    "echo x > .git/hooks/pre-commit",
    "mv .git/hooks h && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
    "git config core.fsmonitor /bin/true && git config core.fsmonitor | grep true",
    "echo x > .git/config",
    "echo x > .git/config.worktree",
    "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
    "mv .git/info .git/i; mkdir -p .git/info && echo x > .git/info/attributes",
    "mkdir -p .troupe && echo x > .troupe/settings.json",
    "echo x > .mcp.json",
    "mkdir -p .vscode && echo x > .vscode/tasks.json",
    "mkdir -p .idea && echo x > .idea/x.xml",
    "echo x > .envrc",
    "echo x > .gitmodules",
    "mkdir -p .github/hooks && echo x > .github/hooks/x.json",
    "mkdir -p .github && echo x > .github/mcp.json",
    "mkdir -p .github/copilot && echo x > .github/copilot/settings.json",
    "mkdir -p .claude && echo x > .claude/settings.json",
    "mv .claude away-too; mkdir -p .claude/hooks && echo x > .claude/hooks/x.sh",
    "rm -f .gitmodules && ln -s /etc/passwd .gitmodules",
    "mv .git away && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "rm -rf .git; mkdir .git && echo x > .git/config",
  ];
  const attempts = (commands: readonly string[]): string =>
    commands.map((command, index) => `(${command}) && echo SUCCEEDED ${index}`).join("\n");
  const successes = (output: string): string[] =>
    [...output.matchAll(/SUCCEEDED (\d+)/g)].map(([, index]) => writes[Number(index)] ?? "");

  it.runIf(runs)("D05 the sandbox refuses to change or create files that run automatically later", async () => {
    await repository(user);
    const { output } = await attack(attempts(writes), sandboxed);
    expect(successes(output)).toEqual([]);
    await repository(user);
    const controls = await attack(attempts(writes.slice(0, -2)), control);
    expect(successes(controls.output)).toEqual(writes.slice(0, -2));
    for (const destructive of writes.slice(-2)) {
      await repository(user);
      expect((await attack(attempts([destructive]), control)).output, destructive).toContain("SUCCEEDED");
      spawnSync("rm", ["-rf", workspace.at(".git"), workspace.at("away")]);
    }
  });

  it.runIf(runs)("D05 the sandbox refuses to create a repository, and leaves nothing behind", async () => {
    expect((await attack("git init . && echo SUCCEEDED", sandboxed)).output).not.toContain("SUCCEEDED");
    expect(readdirSync(workspace.path)).toEqual([]);
    expect((await attack("git init . && echo SUCCEEDED", control)).output).toContain("SUCCEEDED");
  });

  it.runIf(runs)("the sandbox lets the agent commit, branch and read the log", async () => {
    await repository(user);
    const command = `echo new > file && git add -A && git -c user.name=a -c user.email=a@b commit -qm one \
      && git checkout -qb topic && git log --oneline | wc -l && git status --porcelain`;
    expect(await attack(command, sandboxed)).toEqual({ code: 0, output: "2\n" });
  });

  it.runIf(runs)("the sandbox cannot ptrace, make a namespace, use a datagram pair or fake typing", async () => {
    const calls = {
      unshare: "unshare -U true",
      mount: "mount -t tmpfs none /mnt",
      sysctl: "echo 1 > /proc/sys/kernel/hostname",
      chroot: "chroot / true",
      typing: `python3 -c 'import fcntl,os; a,b=os.openpty(); fcntl.ioctl(b, 0x5412, b"x")'`,
      pair: `python3 -c 'import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)'`,
    };
    const script = Object.entries(calls).map(([name, command]) => `${command} && echo SUCCEEDED ${name}`);
    expect((await attack(script.join("\n"), sandboxed)).output).not.toContain("SUCCEEDED");
    const stream = `python3 -c 'import socket; socket.socketpair()' && echo fine; '${process.execPath}' -p 1+1`;
    expect((await attack(stream, sandboxed)).output).toBe("fine\n2\n");
  });
});

describe.runIf(works)("the sandbox", () => {
  const sandboxed = { user: [], sandboxed: true };

  it("the sandbox hides credentials, troupe's state and .env files, unless these are allowed", async () => {
    await outside.files({ ".ssh/id": CANARY, ".netrc": CANARY, ".config/gh/hosts.yml": CANARY });
    await state.files({ token: CANARY });
    await workspace.files({ ".env": CANARY, "packages/a/.env.local": CANARY, ".env.example": "EXAMPLE" });
    const command = `cat "$OUT"/.ssh/* "$OUT"/.netrc "$OUT"/.config/gh/* '${state.path}'/* .env packages/a/.env.local .env.example`;
    const { output } = await attack(command, sandboxed);
    expect(output).not.toContain(CANARY);
    expect(output).toContain("EXAMPLE");
    expect((await attack("cat .env", { ...sandboxed, environmentFiles: true })).output).toBe(CANARY);
    expect((await attack(command, { user: [], sandboxed: false })).output).toContain(CANARY);
  });

  it("the sandbox hides credentials that are inside the workspace", async () => {
    await workspace.files({ "home/.ssh/id": CANARY, "home/.bashrc": "mine" });
    const command = "cat home/.ssh/id; echo x > home/.bashrc; cat home/.bashrc";
    const { output } = await attack(command, { ...sandboxed, home: workspace.at("home") });
    expect(output).not.toContain(CANARY);
    expect(await workspace.read("home/.bashrc")).toBe("mine");
  });

  it("the sandbox lets a linked worktree commit, and ignores a .git file that its repository does not know", async () => {
    await repository([]);
    const main = workspace;
    const tree = await tempFolder();
    spawnSync("git", ["worktree", "add", "-q", tree.at("tree")], { cwd: main.path });
    const stage = await shellStage({ sandboxed: {} });
    const identity = "-c user.name=a -c user.email=a@b";
    const commit = await stage.run(
      `echo 1 > x && git add x && git ${identity} commit -qm tree && echo done; echo y > '${main.path}/.git/hooks/post-commit'`,
      {
        cwd: tree.at("tree"),
        roots: [tree.at("tree")],
      },
    );
    expect(commit.output).toMatch(/^done\n.*Read-only file system\n$/s);
    mkdirSync(tree.at("false"));
    writeFileSync(tree.at("false/.git"), readFileSync(tree.at("tree/.git")));
    const forged = await stage.run(`echo y > '${main.path}/.git/pwned' && echo SUCCEEDED`, {
      cwd: tree.at("false"),
      roots: [tree.at("false")],
    });
    expect(forged.output).not.toContain("SUCCEEDED");
    await stage[Symbol.asyncDispose]();
    await tree.remove();
  });

  it("the sandbox protects what a link in the workspace points to", async () => {
    await workspace.files({ "real/tasks.json": "mine" });
    symlinkSync("real", workspace.at(".vscode"));
    await attack("echo x > .vscode/tasks.json; echo x > real/tasks.json", sandboxed);
    expect(await workspace.read("real/tasks.json")).toBe("mine");
  });

  it("the sandbox removes a redirection of git that appears during a command", async () => {
    await repository([]);
    await attack(`echo "$PWD/evil" > .git/commondir`, sandboxed);
    expect(existsSync(workspace.at(".git/commondir"))).toBe(false);
  });

  it("the sandbox takes typed input, in a terminal of its own where there is one", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const { signal } = new AbortController();
    for (const more of [{}, { shellId: "named" }]) {
      const { shellId } = await stage.run("read -r word; echo [$word]; echo x > /usr/pwned", {
        mode: "async",
        ...more,
      });
      const reply = await stage.shells.write({ shellId, input: "hello{enter}", waitMs: 5000, signal });
      expect(reply.output).toMatch(/\[hello\]\n.*Read-only file system/s);
    }
  });

  it("the sandbox keeps mount points while another command needs them, and removes them after the last", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    const long = stage.run("sleep 0.8; echo x > .mcp.json && echo SUCCEEDED; mkdir .vscode/a && echo SUCCEEDED");
    for (let round = 0; round < 4; round++) await stage.run("true");
    expect((await long).output).not.toContain("SUCCEEDED");
    expect(readdirSync(stage.workspace.path)).toEqual([]);
  });

  it("the sandbox removes mount points that a crash left, at the next start", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files({ ".mcp.json": "", ".envrc": "mine" });
    mkdirSync(stage.workspace.at(".vscode"));
    const points = [
      { path: stage.workspace.at(".mcp.json"), kind: "file" },
      { path: stage.workspace.at(".envrc"), kind: "file" },
      { path: stage.workspace.at(".vscode"), kind: "folder" },
    ];
    const record = JSON.stringify({ pid: 999_999_999, started: "1", points });
    await stage.state.files({ "sandbox/mounts-999999999.json": record });
    await stage.run("true");
    expect(readdirSync(stage.workspace.path)).toEqual([".envrc"]);
    expect(existsSync(stage.state.at("sandbox/mounts-999999999.json"))).toBe(false);
  });
});

describe.runIf(works && canBeNobody)("the sandbox as root in the folder of another user", () => {
  it("the sandbox refuses to run a command as root in the folder of another user", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    spawnSync("chown", [NOBODY, stage.workspace.path]);
    await expect(stage.run("true")).rejects.toThrow(
      /belongs to user 65534. Start as that user, not as root. Nothing was/,
    );
  });
});

describe("a command without bubblewrap (D13)", () => {
  const candidates = ["/nowhere/bwrap"];

  it("D13 a command without bubblewrap is not run when a sandbox is required", async () => {
    await using stage = await shellStage({ sandboxed: { mode: "required", candidates } });
    await expect(stage.run("touch ran")).rejects.toThrow(
      "sandbox.unavailable: commands must run in a sandbox here, and there is none: bubblewrap is not installed.",
    );
    expect(readdirSync(stage.workspace.path)).toEqual([]);
  });

  it("D13 a missing bubblewrap causes one visible warning when a sandbox would be used", async () => {
    const warnings: string[] = [];
    const onWarning = (message: string): void => void warnings.push(message);
    await using stage = await shellStage({ sandboxed: { mode: "auto", candidates }, onWarning });
    const warning =
      "Commands run without a sandbox: bubblewrap is not installed. Install the package bubblewrap (bwrap).";
    expect(await stage.run("true")).toEqual({ shellId: "1", state: "exited", output: "", exitCode: 0, warning });
    expect(await stage.run("true")).toEqual({ shellId: "2", state: "exited", output: "", exitCode: 0 });
    expect(warnings).toEqual([warning]);
  });

  it("D13 a program that another user could have created is not used as bubblewrap", async () => {
    await using folder = await tempFolder({ bwrap: "#!/bin/sh\nexit 0\n" });
    chmodSync(folder.at("bwrap"), 0o777);
    const sandbox = createSandbox({ mode: "auto", stateRoot: folder.path, candidates: [folder.at("bwrap")] });
    expect(await sandbox.probe()).toMatchObject({ available: false });
  });
});

async function repository(user: readonly string[]): Promise<void> {
  const identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
  if (user.length > 0) spawnSync("chown", [`${NOBODY}:${NOBODY}`, workspace.path, outside.path]);
  for (const arguments_ of [
    ["init", "-q", "."],
    [...identity, "commit", "-q", "--allow-empty", "-m", "start"],
  ]) {
    const [file = "", ...rest] = [...user, "git", ...arguments_];
    spawnSync(file, rest, { cwd: workspace.path, env: { PATH: process.env.PATH, HOME: outside.path } });
  }
}

function listening(where: string | number, onConnection: () => void): Promise<Server> {
  const server = createServer((socket) => {
    onConnection();
    socket.on("error", () => undefined).end();
  });
  return new Promise((resolve) => {
    if (typeof where === "number") server.listen(where, "127.0.0.1", () => resolve(server));
    else server.listen(where, () => resolve(server));
  });
}
