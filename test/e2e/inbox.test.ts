/** What sidekicks left, through the built program. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let cwd: string;
let home: string;

beforeAll(async () => {
  folder = await tempFolder();
  [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
  mkdirSync(cwd);
  mkdirSync(join(home, "agents"), { recursive: true });
  const head = "---\nname: finder\ndescription: Finds.\nsidekick: { triggers: [user.message] }\n---\n";
  writeFileSync(join(home, "agents", "finder.md"), `${head}You are the FINDER.\n`);
});
afterAll(() => folder[Symbol.asyncDispose]());

describe("troupe inbox", () => {
  it("troupe inbox shows a sidekick's entry, which is not on stdout and not among the tasks", async () => {
    const look = { calls: [{ name: "glob", arguments: { pattern: "*" } }] };
    const model = script(folder.path, [
      ...Array.from({ length: 40 }, () => look),
      { say: "The answer." },
      {
        agent: "finder",
        calls: [{ name: "send_inbox", arguments: { summary: "an old note", content: "all of it" } }],
      },
    ]);
    const run = await troupe(["-p", "go", "--model", model], { cwd, home });
    expect(run).toMatchObject({ code: 0, stdout: "The answer.\n" });
    expect(run.stderr).not.toContain("send_inbox");
    const list = await troupe(["inbox", "list"], { cwd, home });
    expect(list.stdout).toMatch(/^inbox-1 {2}finder {2}announced {2}an old note\n$/);
    expect((await troupe(["inbox", "show", "inbox-1"], { cwd, home })).stdout).toContain("an old note\n\nall of it\n");
    expect((await troupe(["inbox", "show", "nothing"], { cwd, home })).code).toBe(2);
    expect((await troupe(["tasks", "list"], { cwd, home })).stdout).toMatch(/^No agents in session/);
    const all = await troupe(["tasks", "list", "--all"], { cwd, home });
    expect(all.stdout).toMatch(/\nSidekicks:\nfinder#1 {2}finished {2}1 turn {2}.* tokens {2}\$0\.0000 {2}sent 1\n$/);
  });
});
