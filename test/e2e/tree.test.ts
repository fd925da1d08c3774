/** What a person sees of agents while they work, and how long a prompt waits for them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

async function withProject(test: (place: { cwd: string; home: string; root: string }) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const cwd = join(folder.path, "project");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "a.txt"), "alpha\n");
  await test({ cwd, home: join(folder.path, "home"), root: folder.path });
}

const start = (name: string, mode: "sync" | "background"): object => ({
  call: { name: "task", arguments: { description: "look around", prompt: "look", agent_type: "explore", name, mode } },
});
const usage = { usage: { inputTokens: 500, outputTokens: 56 } };

describe("a prompt with agents", () => {
  it("ORC-39 ORC-80 a prompt waits for background agents, reports them on stderr, then the total usage", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(
        root,
        [
          start("scout", "background"),
          { say: "Started." },
          { say: "All done." },
          { agent: "explore", call: { name: "glob", arguments: { pattern: "*" } } },
          { agent: "explore", say: "found a.txt" },
        ],
        usage,
      );
      const { code, stdout, stderr } = await troupe(["-p", "go", "--model", model], { cwd, home });
      expect({ code, stdout }).toEqual({ code: 0, stdout: "All done.\n" });
      const lines = stderr.trimEnd().split("\n");
      expect(lines).toContain("troupe: scout (explore) started: look around");
      expect(lines).toContain("troupe: scout: glob *");
      expect(lines).toContain("troupe: waiting for scout (explore), at most 600 s");
      expect(stderr).toMatch(/^troupe: scout \(explore\) finished in \d+\.\d s, 1 tool, 1,112 tokens$/m);
      expect(lines.at(-1)).toMatch(
        /^troupe: 5 turns \(1 agent: scout 2\), 2,780 tokens, no cost, model faux, session /,
      );
    }));

  it("ORC-89 --share writes the session to a file after the answer: Markdown, or JSON lines for .jsonl", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [
        start("scout", "sync"),
        { say: "All done." },
        { agent: "explore", call: { name: "glob", arguments: { pattern: "*" } } },
        { agent: "explore", say: "found a.txt" },
      ]);
      const share = (file: string) => troupe(["-p", "look around", "--model", model, "--share", file], { cwd, home });
      const first = await share("talk.md");
      expect({ code: first.code, stdout: first.stdout }).toEqual({ code: 0, stdout: "All done.\n" });
      expect(first.stderr).toContain("troupe: session written to talk.md\n");
      expect(readFileSync(join(cwd, "talk.md"), "utf8")).toMatch(
        /^# Session [\w-]+\n[\s\S]*## User\n\nlook around\n[\s\S]*\*\*task\*\*[\s\S]*\*\*glob\*\* \(scout\)[\s\S]*## Assistant \(scout\)\n\nfound a\.txt\n[\s\S]*## Assistant\n\nAll done\.\n$/,
      );
      const second = await share("talk.jsonl");
      expect([second.code, second.stderr]).toEqual([0, expect.stringContaining("session written to talk.jsonl")]);
      const types = readFileSync(join(cwd, "talk.jsonl"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).type);
      expect([types[0], types.at(-1)]).toEqual(["session.start", "session.shutdown"]);
      const lost = await share("no/such/folder/talk.md");
      expect([lost.code, lost.stdout, lost.stderr]).toEqual([
        1,
        "All done.\n",
        expect.stringContaining("could not be written to no/such/folder/talk.md"),
      ]);
    }));

  it("a prompt with agents prints nothing on stderr with --silent", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [start("scout", "sync"), { say: "Done." }, { agent: "explore", say: "found" }]);
      const { stdout, stderr } = await troupe(["-p", "go", "-s", "--model", model], { cwd, home });
      expect({ stdout, stderr }).toEqual({ stdout: "Done.\n", stderr: "" });
    }));

  it("a prompt waits no longer than the limit, keeps the answer, and says how to resume remaining agents", () =>
    withProject(async ({ cwd, home, root }) => {
      const model = script(root, [
        start("scout", "background"),
        { say: "Started." },
        { agent: "explore", say: "half", stall: true },
      ]);
      const run = (seconds: string, ...flags: string[]) =>
        troupe(["-p", "go", "--model", model, ...flags], {
          cwd,
          home,
          environment: { TROUPE_TASK_WAIT_TIMEOUT_SECONDS: seconds },
        });
      const timedOut = await run("0.3", "-s");
      expect(timedOut).toMatchObject({ code: 0, stdout: "Started.\n" });
      expect(timedOut.stderr).toMatch(
        /^troupe: 1 agent not done after 0\.3 s of waiting, and cut off: scout\ntroupe: to resume: troupe tasks resume scout --session [0-9a-f-]{36}\n$/,
      );
      const unwaited = await run("0");
      expect(unwaited).toMatchObject({ code: 0, stdout: "Started.\n" });
      expect(unwaited.stderr).toContain("troupe: 1 agent not waited for, and cut off: scout\n");
      expect(unwaited.stderr).not.toContain("waiting for");
      const json = await run("0", "--output-format", "json");
      const result = JSON.parse(json.stdout.trimEnd().split("\n").at(-1) ?? "") as object;
      expect(result).toMatchObject({ outcome: "done", exitCode: 0, unfinishedAgents: ["scout"] });
      expect(await run("soon")).toMatchObject({ code: 2, stderr: expect.stringContaining('not "soon"') });
    }));
});
