/** `troupe doctor` of the built program, on real files, processes and terminals. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { spawn as spawnTerminal } from "@lydell/node-pty";
import { expect, it } from "vitest";
import { httpStatus, modelServer, says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { onTerminal } from "../support/terminal.ts";
import { script, type TroupeOptions, troupe } from "../support/troupe.ts";

interface Report {
  readonly ok: boolean;
  readonly findings: readonly {
    readonly id: string;
    readonly group: string;
    readonly status: string;
    readonly summary: string;
    readonly fixed?: string;
  }[];
}

async function desk() {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path, { mode: 0o700 });
  const run = (args: readonly string[], more: Partial<TroupeOptions> = {}) => troupe(args, { cwd, home, ...more });
  return {
    home,
    cwd,
    run,
    async report(flags: readonly string[] = [], environment: Record<string, string> = {}) {
      const { code, stdout } = await run(["doctor", "--json", ...flags], { environment });
      const report = JSON.parse(stdout) as Report;
      return { code, ...report, of: (id: string) => report.findings.filter((finding) => finding.id === id) };
    },
    say: (prompt: string) => run(["-s", "-p", prompt, "--model", script(folder.path, [{ say: "ok" }])]),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

it("troupe doctor checks every group, tests the built-in model, and exits with 0 without problems", async () => {
  await using at = await desk();
  await at.say("hello");
  const { code, ok, findings, of } = await at.report();
  expect({ code, ok }).toEqual({ code: 0, ok: true });
  expect([...new Set(findings.map(({ group }) => group))]).toEqual([
    ...["Install", "Configuration", "Models", "Machine", "Terminal", "State"],
  ]);
  expect(of("models.understudy")).toMatchObject([{ status: "ok", summary: expect.stringContaining("answered in") }]);
  expect(of("state.logs")).toMatchObject([{ status: "ok", summary: "read 1 session, 0 damaged" }]);
  const text = await at.run(["doctor"]);
  expect(text).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Install\n {2}ok {7}troupe \d/) });
});

it("troupe doctor names the line of a broken settings file, and ends with 1", async () => {
  await using at = await desk();
  writeFileSync(join(at.home, "settings.json"), '{\n  "stream": "sometimes"\n}\n');
  mkdirSync(join(at.cwd, ".troupe"));
  writeFileSync(join(at.cwd, ".troupe", "settings.json"), '{\n  "permisions": {}\n}\n');
  const { code, of } = await at.report();
  expect(code).toBe(1);
  expect(of("config.settings")).toMatchObject([
    { status: "problem", summary: expect.stringMatching(/home\/settings\.json:2: stream: /) },
    { status: "warning", summary: expect.stringContaining('Did you mean "permissions"?') },
  ]);
});

it("troupe doctor sends a request that may cost money only with --online, and one only", async () => {
  await using at = await desk();
  await using server = await modelServer({ handler: () => says("ready") });
  const environment = { TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any", TROUPE_API_KEY: "k" };
  const asked = () => server.requests.filter(({ request }) => request !== undefined).length;
  expect((await at.report([], environment)).of("models.custom")).toMatchObject([
    { status: "ok", summary: expect.stringContaining("not tested") },
  ]);
  expect(asked()).toBe(0);
  expect((await at.report(["--online"], environment)).of("models.custom")).toMatchObject([
    { status: "ok", summary: expect.stringContaining("answered in") },
  ]);
  expect(asked()).toBe(1);
});

it("troupe doctor reports a provider that rejects the key", async () => {
  await using at = await desk();
  await using server = await modelServer({ handler: () => httpStatus(401, { body: "no such key" }) });
  const environment = { TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any", TROUPE_API_KEY: "wrong" };
  const { code, of } = await at.report(["--online"], environment);
  expect(code).toBe(1);
  expect(of("models.custom")).toMatchObject([{ status: "problem" }]);
});

it("troupe doctor repairs open folders, locks of dead processes and a damaged index with --fix, and reports that", async () => {
  await using at = await desk();
  await at.say("hello");
  await at.run(["search", "hello"]);
  const sessions = join(at.home, "session-state");
  const [{ sessionId }] = JSON.parse((await at.run(["sessions", "list", "--json"])).stdout) as [{ sessionId: string }];
  const lock = join(sessions, sessionId, "lock");
  // A process that takes the lock and is killed leaves it behind.
  const child = spawn(
    process.execPath,
    [
      resolve("bin/troupe.js"),
      "-s",
      "-p",
      "x",
      "--resume",
      sessionId,
      "--model",
      script(at.home, [{ call: { name: "bash", arguments: { command: "sleep 100", description: "wait" } } }]),
      "--allow-all",
    ],
    {
      cwd: at.cwd,
      env: { PATH: process.env.PATH ?? "", HOME: at.home, TROUPE_HOME: at.home, TROUPE_NO_DISCOVERY: "1" },
      stdio: "ignore",
    },
  );
  const ended = once(child, "close");
  await expect.poll(() => existsSync(lock) && readFileSync(lock, "utf8").includes(`"pid":${child.pid},`)).toBe(true);
  child.kill("SIGKILL");
  await ended;
  // After the process ended: it would repair what it meets.
  chmodSync(sessions, 0o755);
  writeFileSync(
    join(at.home, "session-store.db"),
    "this is no database, but it is long enough to be read as one\n".repeat(200),
  );
  const before = await at.report();
  const statuses = (report: typeof before) =>
    ["state.permissions", "state.locks", "state.index"].map((id) => report.of(id).map(({ status }) => status));
  expect(statuses(before)).toEqual([["warning"], ["warning"], ["warning"]]);
  expect(existsSync(lock)).toBe(true);
  const repaired = await at.report(["--fix"]);
  expect(["state.permissions", "state.locks", "state.index"].flatMap((id) => repaired.of(id))).toMatchObject([
    { status: "ok", fixed: `${sessions} is private now` },
    { status: "ok", fixed: "released 1 lock of processes that are gone" },
    { status: "ok", fixed: expect.stringContaining("rebuilt the search index") },
  ]);
  expect(statSync(sessions).mode & 0o777).toBe(0o700);
  expect(existsSync(lock)).toBe(false);
  expect(statuses(await at.report())).toEqual([["ok"], ["ok"], ["ok"]]);
});

it("troupe doctor reports damaged logs by line", async () => {
  await using at = await desk();
  await at.say("hello");
  const [{ sessionId }] = JSON.parse((await at.run(["sessions", "list", "--json"])).stdout) as [{ sessionId: string }];
  const log = join(at.home, "session-state", sessionId, "events.jsonl");
  const lines = readFileSync(log, "utf8").split("\n");
  lines[1] = `${lines[1]?.slice(0, 20)}`;
  writeFileSync(log, lines.join("\n"));
  expect((await at.report()).of("state.logs")).toMatchObject([
    { status: "warning", summary: expect.stringMatching(new RegExp(`session ${sessionId}: line 2: `)) },
    { status: "ok", summary: "read 1 session, 1 damaged" },
  ]);
});

it("troupe doctor describes a terminal, and asks before a request that may cost money", async () => {
  await using at = await desk();
  await using server = await modelServer({ handler: () => says("ready") });
  const environment = { TROUPE_BASE_URL: server.baseUrl, TROUPE_MODEL: "any", TROUPE_API_KEY: "k", LANG: "C.UTF-8" };
  const { screen } = await onTerminal(["doctor"], { ...at, environment, answers: [["[y/N]", "y"]] });
  expect(screen).toContain("TERM=xterm-256color, 80 × 40");
  expect(screen).toContain("keyboard protocol: no");
  expect(screen).toMatch(/custom\/any: answered in/);
});

it("troupe doctor resets a terminal that a killed program left in raw mode, with mouse and paste on", async () => {
  await using at = await desk();
  const broken = "\\033[?1049h\\033[?1000h\\033[?1006h\\033[?2004h\\033[?25l\\033[>1u";
  const commands = `stty raw -echo; printf '${broken}'; "$NODE" "$TROUPE" doctor --reset-terminal > /dev/null; echo code $?; stty -a`;
  const terminal = spawnTerminal("/bin/sh", ["-c", commands], {
    ...{ cwd: at.cwd, cols: 80, rows: 24 },
    env: {
      PATH: process.env.PATH ?? "",
      HOME: at.home,
      TROUPE_HOME: at.home,
      NODE: process.execPath,
      TROUPE: resolve("bin/troupe.js"),
    },
  });
  let screen = "";
  terminal.onData((data) => {
    screen += data;
  });
  await new Promise<void>((done) => terminal.onExit(() => setImmediate(done)));
  for (const off of ["?1049l", "?1000l", "?1006l", "?2004l", "?1004l", "?25h", "<u"])
    expect(screen).toContain(`\u001b[${off}`);
  const settings = screen.slice(screen.indexOf("code 0"));
  expect(settings).toMatch(/ icanon /);
  expect(settings).toMatch(/ echo /);
});

it("troupe doctor reports that there is no terminal to reset", async () => {
  await using at = await desk();
  const child = spawn(process.execPath, [resolve("bin/troupe.js"), "doctor", "--reset-terminal"], {
    cwd: at.cwd,
    detached: true, // a session of its own has no terminal
    env: { PATH: process.env.PATH ?? "", HOME: at.home, TROUPE_HOME: at.home },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = (await once(child, "close")) as [number];
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("There is no terminal to reset.") });
});
