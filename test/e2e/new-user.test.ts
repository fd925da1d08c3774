/** What someone meets in the first hour: through the built program. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { runGitPlainly } from "../session/worktree-stage.ts";
import { script, troupe } from "../support/troupe.ts";
import { HANG_MS } from "../support/work.ts";

interface Place {
  readonly cwd: string;
  readonly home: string;
  readonly path: string;
}

async function withPlace(test: (place: Place) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const place = { path: folder.path, cwd: join(folder.path, "project"), home: join(folder.path, "home") };
  for (const path of [place.cwd, place.home]) mkdirSync(path);
  await test(place);
}

const start = (name: string, more: object = {}): object => ({
  call: { name: "task", arguments: { description: name, prompt: "work", agent_type: "runner", name, ...more } },
});

function withRunner({ home }: Place, head = ""): void {
  mkdirSync(join(home, "agents"));
  writeFileSync(join(home, "agents/runner.md"), `---\ndescription: Runs.\n${head}---\n\nYou are the RUNNER.\n`);
}

describe("a state folder that cannot be written", () => {
  it.each([
    ["mcp", "add", "x", "--", "true"],
    ["trust", "--yes"],
  ])("a state folder that cannot be written causes an error of one line: troupe %s %s", (...args) =>
    withPlace(async ({ cwd, path }) => {
      writeFileSync(join(path, "file"), "");
      writeFileSync(join(cwd, ".mcp.json"), '{ "mcpServers": { "a": { "command": "true" } } }');
      for (const home of [join(path, "file/home"), "/proc/none/home"]) {
        const { code, stderr } = await troupe(args, { cwd, home });
        expect([1, 2]).toContain(code);
        expect(stderr).toMatch(/^troupe: .*TROUPE_HOME.*\n$/);
        expect(stderr).not.toContain("defect");
      }
    }),
  );
});

describe("troupe mcp", () => {
  it("troupe mcp refuses an unknown scheme, and fails when a server cannot be reached", () =>
    withPlace(async (place) => {
      const refused = await troupe(["mcp", "add", "k", "ftp://x"], place);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("not ftp://") });
      await troupe(["mcp", "add", "gone", "--", "/nonexistent/server"], place);
      const got = await troupe(["mcp", "get", "gone", "--connect"], place);
      expect(got).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^troupe: There is no connection to gone: /),
      });
      expect(got.stdout).toContain("transport: stdio");
      expect((await troupe(["mcp", "get", "gone"], place)).code).toBe(0);
    }));
});

describe("a check", () => {
  it("a check that passes after autopilot is reported on stderr, and the summary is the answer", () =>
    withPlace(async (place) => {
      const complete = { call: { name: "task_complete", arguments: { summary: "All of it is done." } } };
      const run = (check: string) =>
        troupe(["-p", "x", "--autopilot", "--check", check, "--model", script(place.path, [complete])], place);
      const good = await run("true");
      expect(good).toMatchObject({ code: 0, stdout: "All of it is done.\n" });
      expect(good.stderr).toContain("troupe: autopilot: complete; the check passed\n");
      const missing = await run("no-such-program-here");
      expect(missing.code).toBe(6);
      expect(missing.stderr).toMatch(
        /unverified: the check `no-such-program-here` ended with exit code 127:\n {2}.*found/,
      );
    }));

  it("a check also runs after an answer without autopilot", () =>
    withPlace(async (place) => {
      const run = (check: string) =>
        troupe(["-p", "x", "--check", check, "--model", script(place.path, [{ say: "hello" }])], place);
      const good = await run("true");
      expect(good).toMatchObject({ code: 0, stdout: "hello\n", stderr: expect.stringContaining("the check passed\n") });
      const bad = await run("echo broken; exit 3");
      expect(bad).toMatchObject({ code: 1, stdout: "hello\n" });
      expect(bad.stderr).toContain("failed: the check `echo broken; exit 3` ended with exit code 3:\n  broken\n");
    }));
});

describe("agents", () => {
  it("agents are reported as interrupted when Ctrl+C stops the run", () =>
    withPlace(async (place) => {
      withRunner(place);
      const steps = [
        start("worker", { mode: "background" }),
        { say: "ok" },
        { agent: "RUNNER", say: "a", stall: true },
      ];
      const { stderr } = await troupe(["-p", "x", "--model", script(place.path, steps)], {
        ...place,
        when: { text: "waiting for worker", react: (child) => child.kill("SIGINT") },
      });
      expect(stderr).not.toContain("of waiting");
      expect(stderr).toMatch(/worker \(runner\) was cut off|1 agent interrupted: worker/);
    }));

  it("agents that are resumed continue with the requested model", () =>
    withPlace(async (place) => {
      const steps = [calls(["task", { ...taskArguments, name: "worker" }]), stalls(), says("more")];
      await using server = await modelServer({ steps });
      const here = { baseUrl: server.baseUrl, apiKey: "k", models: { own: {}, given: {}, usual: {} } };
      writeFileSync(join(place.home, "providers.json"), JSON.stringify({ providers: { here } }));
      withRunner(place, "model: here/own\n");
      const asksItsModel = () => vi.waitUntil(() => server.requests.length >= 2, { timeout: HANG_MS });
      await troupe(["-p", "x", "--model", "here/usual"], {
        ...place,
        when: {
          text: "worker (runner) started",
          react: (child) => void asksItsModel().finally(() => child.kill("SIGKILL")),
        },
      });
      const resumed = await troupe(["tasks", "resume", "worker", "--model", "here/given"], place);
      const asked = server.requests.map(({ body }) => (body as { model: string }).model);
      expect({ asked, ...resumed }).toMatchObject({ asked: ["usual", "own", "given"], stdout: "more\n" });
    }));

  it("agents have a worktree whose path is reported, and which is removed with the session", () =>
    withPlace(async (place) => {
      withRunner(place);
      const git = (...args: string[]) => runGitPlainly(args, place.cwd);
      git("init", "-q", "-b", "main");
      git("-c", "user.name=Ada", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first");
      const create = { name: "create", arguments: { path: "new.txt", file_text: "new\n" } };
      const steps = [
        start("worker", { isolation: "worktree" }),
        { agent: "RUNNER", call: create },
        { agent: "RUNNER", say: "made it" },
        { say: "ok" },
      ];
      const ids = ["--session-id", "11111111-1111-4111-8111-111111111111"];
      await troupe(["-p", "x", "--allow-all", ...ids, "--model", script(place.path, steps)], place);
      const shown = await troupe(["tasks", "show", "worker", "--json"], place);
      expect(JSON.parse(shown.stdout).task.worktree).toMatch(/\/worktrees\/worker$/);
      const refused = await troupe(["sessions", "delete", "1111111"], place);
      expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("not merged: worker.") });
      expect(await troupe(["sessions", "delete", "1111111", "--force"], place)).toMatchObject({ code: 0, stderr: "" });
      expect(git("branch", "--list", "troupe/*")).toBe("");
    }));
});

const taskArguments = { description: "d", prompt: "work", agent_type: "runner" };
