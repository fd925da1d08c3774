/** Shell completion in real shells. zsh and fish are used where they are installed. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { spawn } from "@lydell/node-pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

let folder: TempFolder;
let home: string;
let cwd: string;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = await tempFolder();
  [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  const programs = join(folder.path, "programs");
  for (const path of [home, cwd, programs, join(cwd, "some folder"), join(home, "agents")]) mkdirSync(path);
  symlinkSync(resolve("bin/troupe.js"), join(programs, "troupe"));
  symlinkSync(process.execPath, join(programs, "node"));
  writeFileSync(join(cwd, "some file.txt"), "");
  writeFileSync(join(home, "agents", "gardener.md"), "---\ndescription: Looks after plants.\n---\nWater them.\n");
  environment = {
    PATH: `${programs}:${process.env.PATH ?? ""}`,
    HOME: home,
    TROUPE_HOME: home,
    TROUPE_NO_DISCOVERY: "1",
    ANTHROPIC_API_KEY: "k",
    TERM: "xterm-256color",
    LC_ALL: "C.UTF-8",
  };
  await troupe(["-s", "-p", "x", "--name", "release", "--model", script(folder.path, [{ say: "ok" }])], { cwd, home });
});
afterAll(() => folder[Symbol.asyncDispose]());

const has = (shell: string): boolean => spawnSync(shell, ["-c", "exit 0"]).status === 0;

/** Completes the last of the words, as bash does when Tab is pressed after them. */
async function inBash(...words: string[]): Promise<string[]> {
  const program = `source <(troupe completion bash)
COMP_WORDS=(troupe "$@"); COMP_CWORD=$#
_troupe troupe
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)("bash", ["--norc", "-c", program, "bash", ...words], {
    ...{ cwd, env: environment },
  });
  return stdout.split("\n").filter(Boolean);
}

/** Starts an interactive shell on a terminal, types, and waits until the screen shows the text. */
async function typed(shell: readonly string[], lines: readonly string[], expected: string): Promise<void> {
  const [program = "", ...args] = shell;
  const terminal = spawn(program, args, { cwd, cols: 120, rows: 30, env: environment });
  let screen = "";
  terminal.onData((data) => {
    screen += data;
  });
  try {
    for (const line of lines) {
      const [text = "", shown = ""] = line.split("→");
      terminal.write(text);
      if (shown !== "") await expect.poll(() => screen).toContain(shown);
    }
    await expect.poll(() => screen).toContain(expected);
  } finally {
    terminal.kill("SIGKILL");
  }
}

describe("bash", () => {
  it("bash completion completes commands, subcommands and the flags that a command takes", async () => {
    expect(await inBash("ta")).toEqual(["tasks"]);
    expect(await inBash("tasks", "m")).toEqual(["merge"]);
    expect(await inBash("tasks", "merge", "x", "--")).toEqual(["--as", "--force", "--session", "--help"]);
    expect(await inBash("--mod")).toEqual(["--model", "--mode"]);
    expect(await inBash("help", "perm")).toEqual(["permissions"]);
  });

  it("bash completion completes values: fixed words, models, agents, sessions", async () => {
    expect(await inBash("tasks", "merge", "x", "--as", "s")).toEqual(["squash"]);
    const models = await inBash("-p", "x", "--model", "anthropic/");
    expect(models.length).toBeGreaterThan(1);
    expect(models.every((name) => name.startsWith("anthropic/"))).toBe(true);
    expect(await inBash("--agent", "gard")).toEqual(["gardener"]);
    expect(await inBash("--resume", "rel")).toEqual(["release"]);
    expect(await inBash("sessions", "show", "rel")).toEqual(["release"]);
  });

  it("bash completion completes a value after =, where readline has split the word", async () => {
    expect(await inBash("--effort", "=", "hi")).toEqual(["high"]);
    expect(await inBash("--effort", "=")).toContain("low");
  });

  it("bash completion leaves files and folders to the shell", async () => {
    expect((await inBash("--share", "some")).sort()).toEqual(["some file.txt", "some folder"]);
    expect(await inBash("-C", "some")).toEqual(["some folder"]);
  });

  it("bash completion offers nothing, and prints nothing, for a prompt and for an unknown command", async () => {
    expect(await inBash("-p", "expl")).toEqual([]);
    expect(await inBash("frobnicate", "x")).toEqual([]);
  });

  it("bash completion completes at a real prompt", async () => {
    const set = "PS1='ready> '; source <(troupe completion bash); echo load''ed\r→loaded";
    await typed(["bash", "--norc", "-i"], [set, "troupe tasks mer\t→tasks merge"], "tasks merge");
  });
});

describe.skipIf(!has("zsh"))("zsh", () => {
  it("zsh completion completes at a real prompt", async () => {
    const set =
      "PS1='ready> '; autoload -Uz compinit; compinit -u; source <(troupe completion zsh); echo load''ed\r→loaded";
    await typed(["zsh", "-f", "-i"], [set, "troupe tasks mer\t→tasks merge"], "tasks merge");
    await typed(["zsh", "-f", "-i"], [set, "troupe --resume rel\t→--resume release"], "--resume release");
  });
});

describe.skipIf(!has("fish"))("fish", () => {
  it("fish completion completes commands with their descriptions, values and paths", async () => {
    const inFish = async (line: string): Promise<string[]> => {
      const program = `troupe completion fish | source; complete -C '${line}'`;
      const { stdout } = await promisify(execFile)("fish", ["--no-config", "-c", program], { cwd, env: environment });
      return stdout.split("\n").filter(Boolean);
    };
    expect(await inFish("troupe tasks mer")).toEqual([expect.stringMatching(/^merge\tmerge an agent's worktree/)]);
    expect(await inFish("troupe --resume rel")).toEqual([expect.stringMatching(/^release/)]);
    expect(await inFish("troupe -C some")).toEqual([expect.stringMatching(/^some\\? folder\//)]);
    expect(await inFish("troupe --mode ")).toEqual(["interactive", "plan", "autopilot"]);
  });
});

it("troupe completion refuses an unknown shell", async () => {
  expect(await troupe(["completion", "tcsh"], { cwd, home })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("bash, zsh, fish"),
  });
});
