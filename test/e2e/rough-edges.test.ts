/** What happens around the program: closed pipes, full devices, hostile text, folders that vanish. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let home: string;
beforeAll(async () => {
  folder = await tempFolder();
  home = join(folder.path, "home");
});
afterAll(() => folder[Symbol.asyncDispose]());

/** Through a real shell, as people do. */
function shell(command: string, cwd = folder.path): { code: number | null; stdout: string; stderr: string } {
  const env = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    TROUPE_HOME: home,
    TROUPE_NO_DISCOVERY: "1",
    NODE: process.execPath,
    BIN: resolve("bin/troupe.js"),
  };
  const { status, stdout, stderr } = spawnSync(
    "bash",
    ["-c", `set -o pipefail; troupe() { "$NODE" "$BIN" "$@"; }; ${command}`],
    { cwd, env, encoding: "utf8", timeout: 120_000 },
  );
  return { code: status, stdout, stderr };
}

it("an answer that cannot be written to stdout ends the run with an error", () => {
  const model = script(folder.path, [{ say: "hello" }]);
  const full = shell(`troupe -s -p x --model ${model} > /dev/full`);
  expect(full).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^troupe: the answer could not be written to stdout: .*\n$/),
  });
});

it("a closed pipe after the program never causes a crash", () => {
  const model = script(folder.path, [{ say: "x".repeat(300_000) }]);
  for (const command of ["--help", "sessions list", "models", `-s -p x --model ${model}`]) {
    const { stderr } = shell(`troupe ${command} | true`);
    expect({ command, stderr }).toEqual({ command, stderr: "" });
  }
  expect(
    shell(`{ troupe -p x --model ${script(folder.path, [{ say: "still said" }])} 2>&1 >&3 | true; } 3>&1`).stdout,
  ).toBe("still said\n");
});

it("text of a provider's error cannot drive the terminal or pass for a second line", async () => {
  const model = script(folder.path, [
    { fail: { status: 400, message: "bad \u001b]0;pwned\u0007\u001b[2J thing\nsecond line" } },
  ]);
  const { stderr, code } = await troupe(["-s", "-p", "x", "--model", model], { cwd: folder.path, home });
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: expect.stringMatching(/^troupe: .*bad {2}thing second line.*\n$/),
  });
  expect(stderr).not.toContain("\u001b");
});

it("a password in a remote's address stays in git's own file", async () => {
  const cwd = join(folder.path, "secret-remote");
  mkdirSync(join(cwd, ".git"), { recursive: true });
  writeFileSync(join(cwd, ".git", "HEAD"), "ref: refs/heads/main\n");
  for (const url of [
    "https://user:S3CRET@git.example.com/repo.git",
    "https://user:S3CRET@git.example.com/owner/repo.git",
    "S3CRET@host:owner/repo",
  ]) {
    writeFileSync(join(cwd, ".git", "config"), `[remote "origin"]\n\turl = ${url}\n`);
    const own = join(folder.path, `home-${Math.random()}`);
    await troupe(["-s", "-p", "x", "--model", script(folder.path, [{ say: "ok" }])], { cwd, home: own });
    const state = join(own, "session-state");
    const [id = ""] = readdirSync(state);
    for (const file of ["events.jsonl", "workspace.yaml"]) {
      const path = join(state, id, file);
      if (existsSync(path)) expect(readFileSync(path, "utf8")).not.toContain("S3CRET");
    }
  }
});

it("a state folder that cannot be created is an error, not a loop", () => {
  const { code, stderr } = shell(
    `TROUPE_HOME=/proc/nothing/here troupe -s -p x --model ${script(folder.path, [{ say: "ok" }])}`,
  );
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^troupe: .*\n$/) });
});

it("a deleted working folder is reported in one line", () => {
  mkdirSync(join(folder.path, "gone"));
  const { code, stderr } = shell("cd gone && rmdir ../gone && troupe -p x");
  expect({ code, stderr }).toEqual({ code: 2, stderr: "troupe: The working folder does not exist any more.\n" });
});

it("a flag is not used as a prompt", async () => {
  const { code, stderr } = await troupe(["-p", "--continue"], { cwd: folder.path, home });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("--continue is a flag") });
});

it("a session's name is preferred to the prefix of an id, and upper and lower case count as equal", async () => {
  const own = join(folder.path, "names");
  const say = (text: string): string => script(folder.path, [{ say: text }]);
  await troupe(["-p", "x", "--session-id", "Feature-Login-2", "--model", say("a")], { cwd: folder.path, home: own });
  await troupe(["-p", "x", "--session-id", "other", "--name", "feature", "--model", say("b")], {
    cwd: folder.path,
    home: own,
  });
  const resumed = await troupe(["-p", "x", "--resume", "Feature", "--model", say("c")], {
    cwd: folder.path,
    home: own,
  });
  expect(resumed.stderr).toContain("session other");
  const begun = await troupe(["-p", "x", "--resume", "feature-l", "--model", say("d")], {
    cwd: folder.path,
    home: own,
  });
  expect(begun.stderr).toContain("session Feature-Login-2");
});

it("a state folder that others can enter is made private at the start, and that is reported once", async () => {
  const loose = join(folder.path, "loose");
  mkdirSync(loose);
  chmodSync(loose, 0o777);
  const run = () => troupe(["sessions", "list"], { cwd: folder.path, home, environment: { TROUPE_HOME: loose } });
  expect((await run()).stderr).toContain(`${loose} was open to other users of this machine and is private now.`);
  expect(statSync(loose).mode & 0o777).toBe(0o700);
  expect((await run()).stderr).not.toContain("open to other users");
});
