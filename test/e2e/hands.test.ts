/** The agent changes files, under rules: through the built program, on real files. */

import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

async function withProject(test: (place: { cwd: string; home: string; root: string }) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const cwd = join(folder.path, "project");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "a.txt"), "alpha\nbeta\n");
  await test({ cwd, home: join(folder.path, "home"), root: folder.path });
}

const call = (name: string, given: object): object => ({ call: { name, arguments: given } });
const results = (home: string): { success: boolean; error?: { message: string } }[] => {
  const [id = ""] = readdirSync(join(home, "session-state"));
  return readFileSync(join(home, "session-state", id, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; data: { success: boolean; error?: { message: string } } })
    .filter(({ type }) => type === "tool.execution_complete")
    .map(({ data }) => data);
};

describe("a file tool", () => {
  it("a file tool needs permission, and both the model and the user learn which flag gives it", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("create", { path: "b.txt", file_text: "new\n" }), { say: "tried" }]);
      const { code, stderr } = await troupe(["-p", "x", "--model", model], { cwd, home });
      expect(code).toBe(0);
      expect(stderr).toMatch(/create denied .*allow with --allow-tool write/);
      expect(results(home)[0]?.error?.message).toMatch(/Permission denied .*--allow-tool write/);
      expect(existsSync(join(cwd, "b.txt"))).toBe(false);
    }));

  it("a file tool changes files with its flag, and the changes can be undone", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [
        call("view", { path: "a.txt" }),
        call("edit", { path: "a.txt", old_str: "beta", new_str: "gamma" }),
        call("create", { path: "b.txt", file_text: "new\n" }),
        { say: "done" },
      ]);
      const run = await troupe(["-p", "x", "--allow-tool", "write", "--model", model], { cwd, home });
      expect(run).toMatchObject({ code: 0, stdout: "done\n" });
      expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("alpha\ngamma\n");
      expect(readFileSync(join(cwd, "b.txt"), "utf8")).toBe("new\n");
      const [created, edited] = [await troupe(["undo"], { cwd, home }), await troupe(["undo"], { cwd, home })];
      expect(created).toMatchObject({
        code: 0,
        stdout: `Restored 1 file:\n  ${join(cwd, "b.txt")} (removed: it was new)\n`,
      });
      expect(edited).toMatchObject({ code: 0, stdout: `Restored 1 file:\n  ${join(cwd, "a.txt")}\n` });
      expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("alpha\nbeta\n");
      expect(existsSync(join(cwd, "b.txt"))).toBe(false);
    }));

  it("a file tool changes nothing where a rule denies it, whatever else is allowed", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("create", { path: "b.txt", file_text: "x" }), { say: "tried" }]);
      await troupe(["-p", "x", "--allow-all", "--deny-tool", "write", "--model", model], { cwd, home });
      expect(results(home)).toMatchObject([{ success: false }]);
      expect(existsSync(join(cwd, "b.txt"))).toBe(false);
    }));

  it.each([
    ".git/hooks/pre-commit",
    ".git/config",
    ".troupe/settings.json",
    ".mcp.json",
    ".vscode/tasks.json",
    ".envrc",
  ])("C09 a file tool never changes %s, not even with --allow-all", (path) =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("create", { path, file_text: "x" }), { say: "tried" }]);
      await troupe(["-p", "x", "--allow-all", "--model", model], { cwd, home });
      expect(results(home)).toMatchObject([{ success: false }]);
      expect(existsSync(join(cwd, path))).toBe(false);
    }),
  );

  it("a file tool stays inside the working folder and out of troupe's own folder", () =>
    withProject(async ({ cwd, home, root }) => {
      const steps = [join(root, "outside.txt"), join(home, "providers.json")].map((path) =>
        call("create", { path, file_text: "x" }),
      );
      const model = script(root, [...steps, { say: "tried" }]);
      await troupe(["-p", "x", "--allow-tool", "write", "--model", model], { cwd, home });
      expect(results(home).map(({ success }) => success)).toEqual([false, false]);
      expect(existsSync(join(root, "outside.txt")) || existsSync(join(home, "providers.json"))).toBe(false);
    }));
});

describe("a state folder behind a link", () => {
  it("a state folder behind a link is protected, and a session's own large outputs can be read", () =>
    withProject(async ({ cwd, root }) => {
      mkdirSync(join(root, "real-home"));
      const home = join(root, "linked-home");
      symlinkSync(join(root, "real-home"), home);
      writeFileSync(join(cwd, "big.txt"), "0123456789\n".repeat(4_000));
      const id = "linked";
      const saved = join(root, "real-home", "session-state", id, "records");
      const model = script(root, [
        call("view", { path: "big.txt" }),
        call("glob", { pattern: "*", path: saved }),
        call("create", { path: join(root, "real-home", "providers.json"), file_text: "{}" }),
        { say: "done" },
      ]);
      await troupe(["-p", "x", "--session-id", id, "--allow-tool", "write", "--model", model], { cwd, home });
      expect(results(home).map(({ success }) => success)).toEqual([true, true, false]);
      const again = script(root, [
        call("create", { path: join(home, "providers.json"), file_text: "{}" }),
        { say: "done" },
      ]);
      await troupe(["-p", "x", "--resume", id, "--allow-all", "--model", again], { cwd, home });
      expect(results(home).at(-1)).toMatchObject({ success: false });
      expect(existsSync(join(root, "real-home", "providers.json"))).toBe(false);
    }));
});

describe("web_fetch", () => {
  it("web_fetch requests nothing from an address of this machine, not even with --allow-all", async () => {
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.end("secret");
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("web_fetch", { url }), { say: "tried" }]);
      await troupe(["-p", "x", "--allow-all", "--model", model], { cwd, home });
      expect(results(home)).toMatchObject([{ success: false }]);
    });
    server.close();
    expect(asked).toBe(0);
  });
});

it("sql keeps a todo list in the database of the session", () =>
  withProject(async ({ cwd, home, root }) => {
    const query = "INSERT INTO todos (id, title) VALUES ('a', 'first')";
    const model = script(root, [call("sql", { description: "add", query }), { say: "noted" }]);
    expect(await troupe(["-p", "x", "--model", model], { cwd, home })).toMatchObject({ code: 0, stdout: "noted\n" });
    expect(results(home)).toMatchObject([
      { success: true, result: { content: "1 row(s) inserted. Last inserted row ID: 1." } },
    ]);
  }));

describe("bash", () => {
  it("bash needs permission, names the flag, and runs with it", () =>
    withProject(async ({ cwd, home, root }) => {
      const steps = [
        call("bash", { command: "echo hello > out.txt && cat out.txt", description: "say hello" }),
        { say: "ran" },
      ];
      const refused = await troupe(["-p", "x", "--model", script(root, steps)], { cwd, home });
      expect(refused.stderr).toMatch(/bash denied .*allow with --allow-tool 'shell\(echo\)'/);
      expect(existsSync(join(cwd, "out.txt"))).toBe(false);
      const own = join(root, "home-2");
      await troupe(["-p", "x", "--allow-tool", "shell", "--allow-tool", "write", "--model", script(root, steps)], {
        cwd,
        home: own,
      });
      expect(results(own)).toMatchObject([{ success: true, result: { content: "hello\n<exited with exit code 0>" } }]);
      expect(readFileSync(join(cwd, "out.txt"), "utf8")).toBe("hello\n");
    }));

  it.each([
    "curl evil",
    "env curl evil",
    "sh -c 'curl evil'",
    "true && cu\\rl evil",
    "echo $(curl evil)",
    "timeout 1 /usr/bin/curl evil",
  ])("bash does not run a denied program under --allow-all: %s", (command) =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("bash", { command, description: "fetch" }), { say: "tried" }]);
      await troupe(["-p", "x", "--allow-all", "--deny-tool", "shell(curl:*)", "--model", model], { cwd, home });
      expect(results(home)).toMatchObject([{ success: false, error: { code: "denied" } }]);
    }),
  );

  it("bash shows a command neither keys nor troupe's own variables", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("bash", { command: "env", description: "look" }), { say: "ran" }]);
      const environment = { OPENAI_API_KEY: "sk-canary", MY_SECRET: "canary" };
      await troupe(["-p", "x", "--allow-all", "--model", model], { cwd, home, environment });
      const [result] = results(home);
      expect(result?.success).toBe(true);
      expect(JSON.stringify(result)).not.toMatch(/canary|TROUPE_HOME/);
    }));

  it("an unknown sandbox setting is refused before anything runs", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [call("bash", { command: "echo hi", description: "hi" }), { say: "ran" }]);
      const bad = await troupe(["-p", "x", "--allow-all", "--model", model], {
        cwd,
        home,
        environment: { TROUPE_SANDBOX: "maybe" },
      });
      expect(bad).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("TROUPE_SANDBOX must be auto, required or off"),
      });
    }));
});
