/** Daily use of the built program. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, type TroupeOptions, troupe } from "../support/troupe.ts";

async function desk() {
  const folder = await tempFolder();
  const [home, cwd, other] = ["home", "project", "other"].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [home, cwd, other]) mkdirSync(path);
  const say = (steps: readonly object[], args: readonly string[], more: Partial<TroupeOptions> = {}) =>
    troupe([...args, "--model", script(folder.path, steps)], { cwd, home, ...more });
  const run = (args: readonly string[], more: Partial<TroupeOptions> = {}) => troupe(args, { cwd, home, ...more });
  const sessions = (): string[] => {
    try {
      return readdirSync(join(home, "session-state"));
    } catch {
      return [];
    }
  };
  const events = (id: string) =>
    readFileSync(join(home, "session-state", id, "events.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  return {
    folder,
    home,
    cwd,
    other,
    say,
    run,
    sessions,
    events,
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const ok = [{ say: "ok" }];
const create = { call: { name: "create", arguments: { path: "a.txt", file_text: "one\ntwo\n" } } };

describe("sessions", () => {
  it("--continue never continues a session of another project", async () => {
    await using at = await desk();
    await at.say(ok, ["-p", "hello"]);
    const there = await at.say(ok, ["-p", "more", "--continue"], { cwd: at.other });
    expect(there).toMatchObject({ code: 2, stdout: "" });
    expect(there.stderr).toContain("No session of this repository or folder can be continued");
    expect(await at.say(ok, ["-p", "more", "--continue"])).toMatchObject({ code: 0, stdout: "ok\n" });
    expect(at.sessions()).toHaveLength(1);
  });

  it("a command that needed no session names none", async () => {
    await using at = await desk();
    for (const command of ["/help", "/skills", "/usage"]) {
      const { code, stderr } = await at.run(["-p", command]);
      expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: "" });
    }
    expect(at.sessions()).toEqual([]);
  });

  it("a resumed session that worked in another folder is reported on stderr", async () => {
    await using at = await desk();
    await at.say(ok, ["-p", "hello"]);
    const [id = ""] = at.sessions();
    const moved = `session ${id} worked in ${realpathSync(at.cwd)}; it continues in ${realpathSync(at.other)}`;
    expect((await at.say(ok, ["-p", "more", "--resume", id])).stderr).not.toContain("it continues in");
    const there = await at.say(ok, ["-p", "more", "--resume", id], { cwd: at.other });
    expect(there).toMatchObject({ code: 0, stdout: "ok\n", stderr: expect.stringContaining(moved) });
  });

  it("--session-id resumes the session of that name when it exists", async () => {
    await using at = await desk();
    const id = ["--session-id", "0f0e0d0c-0000-4000-8000-000000000001"];
    expect(await at.say(ok, ["-p", "one", ...id])).toMatchObject({ code: 0 });
    expect(await at.say(ok, ["-p", "two", ...id])).toMatchObject({ code: 0, stdout: "ok\n" });
    expect(at.events(id[1] ?? "").filter(({ type }) => type === "user.message")).toHaveLength(2);
  });

  it("commands that answer by themselves, and mistyped ones, store no session", async () => {
    await using at = await desk();
    expect(await at.say([], ["-p", "/help"])).toMatchObject({ code: 0 });
    expect(await at.say([], ["-p", "/usage"])).toMatchObject({ code: 0 });
    const typo = await at.say([], ["-p", "/reveiw", "--output-format", "json"]);
    expect(typo).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("Did you mean /review?") });
    expect(at.sessions()).toEqual([]);
    const json = await at.say([], ["-p", "/help", "--output-format", "json"]);
    expect(JSON.parse(json.stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({ type: "result", exitCode: 0 });
  });
});

describe("errors", () => {
  it("the error for an unknown agent lists the agents, and for a broken file the reason", async () => {
    await using at = await desk();
    mkdirSync(join(at.home, "agents"));
    writeFileSync(join(at.home, "agents/bad.md"), "---\ndescription: [\n---\nYou are bad.\n");
    const unknown = await at.say(ok, ["-p", "x", "--agent", "nobody"]);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringMatching(/'nobody' not found.*Agents: .*explore/) });
    const broken = await at.say(ok, ["-p", "x", "--agent", "bad"]);
    expect(broken).toMatchObject({ code: 2, stderr: expect.stringMatching(/'bad' cannot be used: \S*bad\.md:\d+: /) });
  });

  it("troupe exits with 7 when the provider rejects the key", async () => {
    await using at = await desk();
    const server = createServer((_, response) => {
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"bad key"}}');
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const environment = {
      TROUPE_BASE_URL: `http://127.0.0.1:${port}/v1`,
      TROUPE_MODEL: "any",
      TROUPE_API_KEY: "test-key-0123456789",
    };
    const { code, stderr } = await at.run(["-p", "x"], { environment });
    server.close();
    expect({ code, stderr }).toEqual({ code: 7, stderr: expect.stringContaining("bad key") });
  });

  it("--max-autopilot-continues accepts 0 and no negative number", async () => {
    await using at = await desk();
    const flag = (value: string) => ["-p", "x", "--autopilot", `--max-autopilot-continues=${value}`];
    const never = await at.say(ok, flag("0"));
    expect(never.stderr).not.toContain("needs a whole number");
    expect(never.code).toBe(4);
    expect(await at.say(ok, flag("-1"))).toMatchObject({ code: 2, stderr: expect.stringContaining("0 or more") });
  });

  it("a failed check of autopilot is shown before the agent continues", async () => {
    await using at = await desk();
    const complete = { call: { name: "task_complete", arguments: { summary: "done" } } };
    const check = "test -e seen || { touch seen; echo not yet; false; }";
    const args = ["-p", "x", "--autopilot", "--check", check, "--allow-all"];
    const { code, stderr } = await at.say([complete, complete], args);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/the check .* ended with .*:\n {2}not yet\n/),
    });
  });

  it("troupe names the required Node version when Node is too old", async () => {
    await using at = await desk();
    const preload = join(at.folder.path, "old.cjs");
    writeFileSync(
      preload,
      'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.0" } });\n',
    );
    const { code, stderr } = await at.run(["--version"], { environment: { NODE_OPTIONS: `--require ${preload}` } });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("needs Node 20.19") });
    expect(readFileSync(resolve("package.json"), "utf8")).toContain('"node": "^20.19');
  });
});

describe("input and output", () => {
  it("large and binary piped input is stored in a file whose path the model sees", async () => {
    await using at = await desk();
    const large = "0123456789abcdef\n".repeat(20_000);
    await at.say(ok, ["-p", "what is this?"], { stdin: large });
    const [id = ""] = at.sessions();
    const { content } = at.events(id).find(({ type }) => type === "user.message").data;
    expect(content.length).toBeLessThan(10_000);
    const [, path = ""] = /in the file (\S+\.txt)\./.exec(content) ?? [];
    expect(readFileSync(path, "utf8")).toBe(large);
    const binary = await at.say(ok, ["-p", "and this?", "--continue"], { stdin: "a\0b" });
    expect(binary.code).toBe(0);
    const last = at.events(id).findLast(({ type }) => type === "user.message").data.content;
    expect(last).toContain("3 bytes of binary data");
    expect(last).not.toContain("\0");
  });

  it("a run ends with the changed files, and troupe diff shows them", async () => {
    await using at = await desk();
    const { stderr } = await at.say([create, { say: "made" }], ["-p", "make it", "--allow-tool", "write"]);
    expect(stderr).toContain("1 file +2 −0 (a.txt) · troupe diff · troupe undo");
    expect(await at.run(["diff"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\+\+\+ b\/.*a\.txt[\s\S]*\+one\n\+two\n/),
    });
    const json = await at.run(["diff", "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject([{ changeType: "added" }]);
    expect((await at.say(ok, ["-p", "nothing", "--continue"])).stderr).not.toContain("troupe undo");
  });

  it("every list command prints one JSON array with --json and with --output-format json", async () => {
    await using at = await desk();
    await at.say([create, { say: "made" }], ["-p", "make it", "--allow-tool", "write"]);
    const { stdout: help } = await at.run(["help", "json"]);
    const lists = [
      ...["sessions list", "undo --list", "diff", "agents list", "models"].map((name) => ({ name, isEmpty: false })),
      ...["tasks list", "inbox list", "mcp list", "memory list", "board list", "board changes", "trust list"].map(
        (name) => ({ name, isEmpty: true }),
      ),
    ];
    for (const { name, isEmpty } of lists) {
      const words = name.split(" ");
      const [one, other] = [await at.run([...words, "--json"]), await at.run([...words, "--output-format", "json"])];
      expect({ name, ...other }).toEqual({ name, ...one, code: 0 });
      const rows: unknown = JSON.parse(one.stdout);
      expect({ name, isArray: Array.isArray(rows), isEmpty: one.stdout === "[]\n" }).toEqual({
        ...{ name, isArray: true, isEmpty },
      });
      expect(help.replace(/\s+/g, " ")).toContain(` ${name}`);
    }
    expect(JSON.parse((await at.run(["search", "make", "--json"])).stdout)).toHaveLength(1);
    expect((await at.run(["search", "nothinglikeit", "--json"])).stdout).toBe("[]\n");
  });

  it("a prompt with --json prints events and the result", async () => {
    await using at = await desk();
    const { stdout } = await at.say(ok, ["-p", "x", "--json"]);
    expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toMatchObject({ type: "result", outcome: "done" });
  });

  it("a prompt with --silent and --stream on prints deltas", async () => {
    await using at = await desk();
    const { stdout } = await at.say(ok, ["-p", "x", "-s", "--output-format", "json", "--stream", "on"]);
    expect(stdout).toContain('"assistant.message_delta"');
  });

  it("a secret that is split over deltas is not printed in part", async () => {
    await using at = await desk();
    const secret = `ghp_${"0a1B2c3D4e5F6g7H8i9J".repeat(2).slice(0, 36)}`;
    const steps = [{ say: `The token is ${secret} here.`, chunkSize: 3 }];
    const plain = await at.say(steps, ["-p", "x", "--stream", "on"]);
    expect(plain).toMatchObject({ code: 0, stdout: "The token is [redacted:github-token] here.\n" });
    const json = await at.say(steps, ["-p", "x", "--output-format", "json", "--stream", "on"]);
    const deltas = json.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === "assistant.message_delta")
      .map(({ data }) => data.deltaContent);
    expect(deltas.length).toBeGreaterThan(2);
    expect(deltas.join("")).toBe("The token is [redacted:github-token] here.");
  });

  it("$ARGUMENTS of a command file is replaced by the typed text", async () => {
    await using at = await desk();
    mkdirSync(join(at.cwd, ".claude/commands"), { recursive: true });
    writeFileSync(join(at.cwd, ".claude/commands/greet.md"), "Greet $ARGUMENTS warmly; first of all $1.\n");
    execFileSync("git", ["init", "-q"], { cwd: at.cwd });
    const { code, stderr } = await at.say(ok, ["-p", "/greet Ada and Bob", "--trust-folder"]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const [id = ""] = at.sessions();
    const { content } = at.events(id).find(({ type }) => type === "user.message").data;
    const sent = JSON.stringify(at.events(id));
    expect(sent).toContain("Greet Ada and Bob warmly; first of all Ada.");
    expect(content).not.toContain("$ARGUMENTS");
  });
});
