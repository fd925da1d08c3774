import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bash } from "../../src/tools/shell/bash.ts";
import { listBash } from "../../src/tools/shell/list-bash.ts";
import { readBash } from "../../src/tools/shell/read-bash.ts";
import { stopBash } from "../../src/tools/shell/stop-bash.ts";
import { writeBash } from "../../src/tools/shell/write-bash.ts";
import type { Tool, ToolContext } from "../../src/tools/tool.ts";
import { type ShellStage, shellStage } from "./stage.ts";

const MAX_BYTES = 1_100;

function contextOf({ shells, workspace }: ShellStage, said: string[] = []): ToolContext {
  const context = {
    cwd: workspace.path,
    roots: [workspace.path],
    toolCallId: "call_1",
    signal: new AbortController().signal,
    progress: (message: string) => void said.push(`progress: ${message}`),
    partialResult: (text: string) => void said.push(text),
    shells,
  };
  return context;
}

async function call(tool: Tool, input: object, context: ToolContext): Promise<string> {
  return (await tool.bind(input).run(context)).content;
}

describe("the text of a command", () => {
  it.each([
    ["echo hello && echo world", "hello\nworld\n<exited with exit code 0>"],
    ["printf 'no line end'", "no line end\n<exited with exit code 0>"],
    ["true", "<exited with exit code 0>"],
    ["echo out; echo err >&2; echo again; exit 3", "out\nerr\nagain\n<exited with exit code 3>"],
    ["echo to > /dev/stderr; echo both | tee /dev/stderr", "to\nboth\nboth\n<exited with exit code 0>"],
    ["kill -9 $$", "<exited with exit code 137>"],
    ["printf '\\033[31mred\\033[0m \\033]0;title\\007bell\\007'", "red bell\n<exited with exit code 0>"],
    ["printf '10%%\\r50%%\\r100%%\\n'", "100%\n<exited with exit code 0>"],
    ["cat", "<exited with exit code 0>"],
    ["shopt -q login_shell || echo plain; echo $-$HISTFILE", "plain\nhBc/dev/null\n<exited with exit code 0>"],
    ["if", "bash: eval: line 9: syntax error: unexpected end of file\n<exited with exit code 2>"],
  ])("the text of a command is shown in full: %s", async (command, expected) => {
    await using stage = await shellStage();
    const text = await call(bash, { command, description: "try" }, contextOf(stage));
    expect(text.replace(/line \d+/, "line 9")).toBe(expected);
  });
});

describe("the shell tools", () => {
  it("the shell tools ask permission for the command they would run, and for the text they would type", async () => {
    await using stage = await shellStage();
    const context = contextOf(stage);
    const { path: cwd } = stage.workspace;
    expect(await bash.bind({ command: "ls", description: "look" }).access(context)).toEqual([
      { kind: "shell", command: "ls", cwd, intention: "look" },
    ]);
    expect(await writeBash.bind({ shellId: "1", input: "rm x" }).access(context)).toEqual([
      { kind: "shell", command: "rm x", cwd, intention: "Type into the running shell 1", shellId: "1" },
    ]);
    expect(await stopBash.bind({ shellId: "1" }).access(context)).toEqual([]);
  });

  it("the shell tools stay small for the first model request", () => {
    for (const { name, description, parameters } of [bash, readBash, writeBash, stopBash, listBash]) {
      const bytes = Buffer.byteLength(JSON.stringify({ name, description, parameters }));
      expect.soft(bytes, name).toBeLessThanOrEqual(MAX_BYTES);
    }
  });

  it("the shell tools report what a command prints while it runs, and only then", async () => {
    await using stage = await shellStage();
    const said: string[] = [];
    await call(bash, { command: "echo one; sleep 0.3; echo two" }, contextOf(stage, said));
    expect(said).toEqual(["one\n", "two\n"]);
  });

  it("the shell tools let a longer command continue, and read the rest later", async () => {
    await using stage = await shellStage();
    const context = contextOf(stage);
    const command = "echo begin; sleep 0.6; echo end; exit 4";
    expect(await call(bash, { command, initial_wait: 0.3 }, context)).toBe(
      "begin\n<still running after 0.3 seconds with shellId: 1; use read_bash for more output or stop_bash to end it>",
    );
    expect(await call(listBash, {}, context)).toMatch(/^1: running, attached, pid \d+: echo begin; sleep 0.6/);
    expect(await call(readBash, { shellId: "1", delay: 10 }, context)).toBe("end\n<exited with exit code 4>");
    await expect(call(readBash, { shellId: "1", delay: 0 }, context)).rejects.toThrow(
      "The command in shell 1 has already finished with exit code 4, and its output has been read.",
    );
    expect(await call(listBash, {}, context)).toBe("No shells.");
  });

  it("the shell tools type into a background command, keys included", async () => {
    await using stage = await shellStage();
    const context = contextOf(stage);
    const command = "read -r name; echo hello $name; cat";
    expect(await call(bash, { command, mode: "async" }, context)).toBe("<still running with shellId: 1>");
    await call(writeBash, { shellId: "1", input: "you{enter}", delay: 0.3 }, context);
    expect(await call(writeBash, { shellId: "1", input: "{ctrl-d}", delay: 10 }, context)).toMatch(
      /<exited with exit code 0>$/,
    );
  });

  it("the shell tools say why a shell takes no input", async () => {
    await using stage = await shellStage();
    const context = contextOf(stage);
    await call(bash, { command: "sleep 300", initial_wait: 0 }, context);
    await expect(call(writeBash, { shellId: "1", input: "x" }, context)).rejects.toThrow(
      'Shell 1 takes no input. Start the command with mode "async" to write to it.',
    );
    expect(await call(stopBash, { shellId: "1" }, context)).toBe("<shell 1 was stopped>");
    await expect(call(stopBash, { shellId: "1" }, context)).rejects.toThrow("Shell 1 has been stopped.");
    await expect(call(readBash, { shellId: "9" }, context)).rejects.toThrow(
      "There is no shell with the shellId 9. list_bash shows those there are.",
    );
  });

  it("the shell tools start a detached command that can be read, takes no input, and reports its end", async () => {
    await using stage = await shellStage();
    const context = contextOf(stage);
    const input = { command: "echo on; sleep 0.5; echo off; exit 5", mode: "async", detach: true };
    const text = await call(bash, input, context);
    const [, log = ""] = /^<running detached with shellId: 1, pid: \d+, log: (.*)>$/.exec(text) ?? [];
    expect(existsSync(log)).toBe(true);
    expect(existsSync(log.replace(/log$/, "pid"))).toBe(true);
    await expect(call(writeBash, { shellId: "1", input: "x" }, context)).rejects.toThrow(
      "1 is a detached command and takes no input. read_bash shows its log.",
    );
    expect(await call(readBash, { shellId: "1", delay: 1.5 }, context)).toBe("on\noff\n<exited with exit code 5>");
  });
});
