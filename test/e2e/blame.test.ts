/** A line leads back to the agent, prompt, approval and answer that wrote it: through the built program. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { type Finished, script, troupe } from "../support/troupe.ts";

describe("troupe blame", () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>;
  let [cwd, home, file] = ["", "", ""];
  const run = (...args: string[]): Promise<Finished> => troupe(args, { cwd, home });
  const edit = (from: string, to: string) => ({
    call: { name: "edit", arguments: { path: "poem.txt", old_str: from, new_str: to } },
  });

  beforeAll(async () => {
    folder = await tempFolder();
    [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
    file = join(cwd, "poem.txt");
    mkdirSync(cwd);
    writeFileSync(file, "old one\nold two\nold three\nold four\n");
    const ask = (prompt: string, steps: readonly object[], ...more: string[]) =>
      run("-p", prompt, "--model", script(folder.path, steps), "--allow-tool", "write", ...more);
    await ask(
      "Rewrite the second line",
      [{ say: "I rewrite it.", ...edit("old two", "new two") }, { say: "done" }],
      ...["--session-id", "poet-1"],
    );
    await ask(
      "Now put a title above it",
      [{ say: "A title.", ...edit("old one", "A title\nold one") }, { say: "done" }],
      "--continue",
    );
    // A person goes on by hand, below what the agent wrote.
    writeFileSync(file, readFileSync(file, "utf8").replace("old three", "by hand"));
    appendFileSync(file, "more by hand\n");
  });
  afterAll(() => folder[Symbol.asyncDispose]());

  it("troupe blame names agent, prompt, words, approval and call, also after later answers moved the line", async () => {
    expect(readFileSync(file, "utf8")).toBe("A title\nold one\nnew two\nby hand\nold four\nmore by hand\n");
    const { code, stdout } = await run("blame", "poem.txt:3");
    expect(code).toBe(0);
    expect(stdout).toContain(`${file}:3\n  new two\n`);
    expect(stdout).toMatch(/^agent +main agent$/m);
    expect(stdout).toMatch(/^session +poet-1$/m);
    expect(stdout).toMatch(/^time +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/m);
    expect(stdout).toMatch(/^call +edit \S+$/m);
    expect(stdout).toMatch(/^prompt +Rewrite the second line$/m);
    expect(stdout).toMatch(/^said +I rewrite it\.$/m);
    expect(stdout).toMatch(/^approval +allowed by .+: .+$/m);
  });

  it("troupe blame names the answer that wrote a line, not the first one of the session", async () => {
    const { code, stdout } = await run("blame", `${file}:1`, "--json");
    expect(code).toBe(0);
    const { origin, ...place } = JSON.parse(stdout) as { origin: Record<string, string> };
    expect(place).toEqual({ path: file, line: 1, text: "A title" });
    expect(origin).toMatchObject({
      sessionId: "poet-1",
      agentId: "",
      tool: "edit",
      prompt: "Now put a title above it",
    });
    const log = readFileSync(join(home, "session-state", "poet-1", "events.jsonl"), "utf8");
    const call = log.split("\n").find((line) => line.includes('"A title\\nold one"') && line.includes("_start"));
    expect(JSON.parse(call ?? "{}")).toMatchObject({ data: { toolCallId: origin.toolCallId } });
  });

  it.each([
    [2, "old one", "was there before"],
    [4, "by hand", "was changed by hand afterwards"],
    [6, "more by hand", "was added by hand"],
  ])("troupe blame names no author for line %i, %j, that %s", async (line, text) => {
    const { code, stdout } = await run("blame", `poem.txt:${line}`);
    expect(code).toBe(0);
    expect(stdout).toBe(
      `${file}:${line}\n  ${text}\nNo recorded change wrote this line: it was there before, or another program wrote it.\n`,
    );
  });

  it("troupe blame shows the command for a line that a command changed or created", async () => {
    const commands = ["sed -i 's/old four/new four/' poem.txt", "printf 'first\\nsecond\\n' > made.txt"];
    const steps = commands.map((command) => ({
      say: "By command.",
      call: { name: "bash", arguments: { command, description: "write" } },
    }));
    const model = ["--model", script(folder.path, [...steps, { say: "done" }])];
    const allowed = ["--allow-tool", "shell", "--allow-tool", "write"];
    await run("-p", "Use the shell", ...model, ...allowed, "--session-id", "shell-1");
    const found = async (place: string) =>
      (JSON.parse((await run("blame", place, "--json")).stdout) as { origin: Record<string, string> }).origin;
    expect(readFileSync(file, "utf8").split("\n")[4]).toBe("new four");
    const origins = [await found("poem.txt:5"), await found("made.txt:2")];
    for (const [index, origin] of origins.entries()) {
      expect(origin).toMatchObject({ sessionId: "shell-1", tool: "bash", command: commands[index] });
      expect(origin.doubt).toBeUndefined();
    }
    // A person goes on in the same file. What the command left is not stored: whose line it is can only be guessed.
    appendFileSync(join(cwd, "made.txt"), "third\n");
    expect(await found("made.txt:2")).toMatchObject({ command: commands[1], doubt: expect.stringContaining("again") });
    expect((await run("blame", "made.txt:2")).stdout).toMatch(/^probably +the file was changed again later/m);
    // The lines of the first session are still known.
    expect(await found("poem.txt:3")).toMatchObject({ sessionId: "poet-1" });
  });

  it.each([
    ["no place", [], "troupe blame needs a file and a line"],
    ["no line", ["poem.txt"], "troupe blame needs a file and a line"],
    ["a line in words", ["poem.txt:three"], "troupe blame needs a file and a line"],
    ["two places", ["poem.txt:1", "poem.txt:2"], "troupe blame needs a file and a line"],
    ["line 0", ["poem.txt:0"], "poem.txt has no line 0."],
    ["a line behind the end", ["poem.txt:99"], "poem.txt has no line 99."],
    ["a file that does not exist", ["none.txt:1"], "none.txt cannot be read."],
  ])("troupe blame refuses %s", async (_, args, message) => {
    expect(await run("blame", ...args)).toMatchObject({
      ...{ code: 2, stdout: "" },
      stderr: expect.stringContaining(message),
    });
  });
});
