/** What shell commands delete and overwrite comes back: a scripted session runs them, `troupe undo` takes them back. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Checkpoints } from "../../src/checkpoints/checkpoints.ts";
import { commandCheckpoints } from "../../src/checkpoints/command-checkpoints.ts";
import type { Arguments } from "../../src/cli/args.ts";
import { undoCommand } from "../../src/cli/commands/undo.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { lazyShells } from "../../src/runtime/permissions/shells.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { bash } from "../../src/tools/shell/bash.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { stage } from "../support/stage.ts";

type Limits = NonNullable<Parameters<typeof commandCheckpoints>[0]["limits"]>;

/** Everything below: contents, modes, links. */
function treeOf(root: string): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).sort();
  return Object.fromEntries(
    names.map((name) => {
      const stat = lstatSync(join(root, name));
      if (stat.isSymbolicLink()) return [name, `-> ${readlinkSync(join(root, name))}`];
      const mode = (stat.mode & 0o7777).toString(8);
      return [name, stat.isDirectory() ? mode : `${mode} ${readFileSync(join(root, name), "base64")}`];
    }),
  );
}

async function workshop(limits: Limits = {}) {
  const home = await tempFolder();
  const folder = await tempFolder();
  onTestFinished(async () => {
    await Promise.all([home.remove(), folder.remove()]);
  });
  const warnings: string[] = [];
  /** The agent runs the commands, one call each, in a session of its own. */
  const run = async (...commands: (string | { command: string; mode: "async" })[]): Promise<void> => {
    const store = jsonlStore({ root: home.path, disk: nodeDisk, stamp: systemStamp });
    const directory = home.at("session-state/session-1");
    const checkpoints = new Checkpoints({ directory, disk: nodeDisk, stamp: systemStamp });
    const sandbox = createSandbox({ mode: "off", stateRoot: home.path });
    const shells = lazyShells({
      sandbox: async () => sandbox,
      folder: join(directory, "files"),
      beforeRun: commandCheckpoints({ checkpoints, except: [home.path], limits }),
      onWarning: (message) => void warnings.push(message),
    });
    const steps = commands.map((given) => calls(["bash", typeof given === "string" ? { command: given } : given]));
    const { session } = await stage([...steps, says("done")], {
      store,
      tools: [bash],
      stamp: systemStamp,
      cwd: folder.path,
      roots: [folder.path],
      context: { cwd: folder.path },
      ports: { shells },
      releaseResources: () => shells.closeAll(),
    });
    await session.sendAndWait({ prompt: "go" });
    await session.close();
  };
  return { home, folder, warnings, run, undo: (...words: string[]) => undo(home, folder, words) };
}

async function undo(home: TempFolder, folder: TempFolder, words: readonly string[]): Promise<string> {
  let printed = "";
  const given: Arguments = {
    words: ["undo", ...words.filter((word) => !word.startsWith("--"))],
    flags: [],
    without: () => [],
    text: () => undefined,
    has: (name) => words.includes(`--${name}`),
    list: () => [],
    amount: () => undefined,
    choice: () => undefined,
  };
  const print = (text: string): void => {
    printed += text;
  };
  await undoCommand(given, { environment: { TROUPE_HOME: home.path }, cwd: folder.path, print });
  return printed;
}

async function plant(folder: TempFolder): Promise<Record<string, string>> {
  await folder.files({
    "src/a.ts": "a\n",
    "ignored/deep/data.bin": Buffer.from([0, 255, 10, 13]),
    "ignored/run.sh": "#!/bin/sh\n",
    ".env": "SECRET=1\n",
    ".gitignore": "ignored\n.env\n",
    "node_modules/x/index.js": "made again\n",
  });
  chmodSync(folder.at("ignored/run.sh"), 0o750);
  chmodSync(folder.at("ignored/deep"), 0o711);
  symlinkSync("deep/data.bin", folder.at("ignored/link"));
  execFileSync("git", ["init", "-q"], { cwd: folder.path });
  return treeOf(folder.path);
}

describe("troupe undo after a shell command", () => {
  it("troupe undo restores an untracked and ignored folder that was deleted by name, byte for byte", async () => {
    const { folder, run, undo, warnings } = await workshop();
    const before = await plant(folder);
    await run("rm -rf ignored");
    expect(existsSync(folder.at("ignored"))).toBe(false);
    expect(await undo("--list")).toContain(`deleted ${folder.at("ignored/deep/data.bin")}`);
    expect(await undo()).toMatch(/^Restored 5 files:/);
    expect(treeOf(folder.path)).toEqual(before);
    expect(warnings).toEqual([]);
  });

  it.each([
    ["a pattern", "rm -rf ign* .env; echo changed > src/a.ts"],
    ["a script that was not understood", 'x=ignored; eval "rm -rf $x"; chmod 600 src/a.ts; rm .env'],
    ["git clean", "git clean -qfdx"],
    ["find", "find src ignored -type f -delete"],
  ])("troupe undo restores what was lost by %s", async (_, command) => {
    const { folder, run, undo } = await workshop();
    const before = await plant(folder);
    await run(command);
    const lost = treeOf(folder.path);
    expect(lost).not.toEqual(before);
    await undo();
    const restored = treeOf(folder.path);
    for (const name of Object.keys(before).filter((path) => path.startsWith("node_modules"))) {
      // Packages are not kept: they can be installed again.
      expect(restored[name]).toEqual(lost[name]);
      delete before[name];
      delete restored[name];
    }
    expect(restored).toEqual(before);
  });

  it("troupe undo brings back a branch that was reset, with its files", async () => {
    const { folder, run, undo } = await workshop();
    await plant(folder);
    const git = (...words: string[]): string =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
        cwd: folder.path,
        encoding: "utf8",
      });
    for (const name of ["one", "two"]) {
      await folder.files({ [name]: name });
      git("add", name);
      git("commit", "-qm", name);
    }
    const head = git("rev-parse", "HEAD");
    await run("git reset -q --hard HEAD~1");
    expect(existsSync(folder.at("two"))).toBe(false);
    await undo();
    expect([git("rev-parse", "HEAD"), await folder.read("two"), git("status", "--porcelain", "-uno")]).toEqual([
      head,
      "two",
      "",
    ]);
  });

  it("troupe undo keeps newer files, and names them", async () => {
    const { folder, run, undo } = await workshop();
    await plant(folder);
    await run("rm -r ignored/*; echo new > ignored/new.txt");
    const printed = await undo();
    expect(printed).toContain(`Created since, and unchanged:\n  ${folder.at("ignored/new.txt")}\n`);
    expect(await folder.read("ignored/new.txt")).toBe("new\n");
    expect(await folder.read("ignored/run.sh")).toBe("#!/bin/sh\n");
  });

  it("troupe undo restores what was replaced by something of another kind", async () => {
    const { folder, run, undo } = await workshop();
    const before = await plant(folder);
    await run("rm -rf ignored src/a.ts; echo file > ignored; mkdir src/a.ts");
    await undo();
    expect(treeOf(folder.path)).toEqual(before);
  });

  it("troupe undo deletes nothing that is in the place of a file, and names it", async () => {
    const { folder, run, undo } = await workshop();
    await plant(folder);
    await run("rm src/a.ts; mkdir src/a.ts; echo mine > src/a.ts/mine");
    await expect(undo()).rejects.toMatchObject({ name: "TroupeError", message: expect.stringContaining("src/a.ts") });
    expect(await folder.read("src/a.ts/mine")).toBe("mine\n");
  });

  it("a copy of many files that takes too long is abandoned and reported", async () => {
    const { folder, run, warnings } = await workshop({ milliseconds: 0 });
    await folder.files(Object.fromEntries(Array.from({ length: 110 }, (_, index) => [`many/${index}`, "x"])));
    await run("make x");
    expect(warnings).toEqual([expect.stringMatching(/^No checkpoint of .* before commands: it is too much\./)]);
  });

  it("a copy of a few files is completed however long it takes", async () => {
    const { folder, run, undo, warnings } = await workshop({ milliseconds: 0 });
    const before = await plant(folder);
    await run("rm -rf $nothing ignored");
    expect(warnings).toEqual([]);
    await undo();
    expect(treeOf(folder.path)).toEqual(before);
  });

  it("changes of others are not attributed to a background command", async () => {
    const { folder, run, undo } = await workshop();
    await plant(folder);
    const background = { command: "sleep 1; rm .env; echo other > src/a.ts; sleep 300", mode: "async" } as const;
    await run(background, "until grep -q other src/a.ts; do sleep 0.05; done");
    await expect(undo()).rejects.toThrow(`these files have changed since: ${folder.at("src/a.ts")}`);
    await undo("--force");
    expect([await folder.read(".env"), await folder.read("src/a.ts")]).toEqual(["SECRET=1\n", "a\n"]);
  });

  it("only the named files are copied when the workspace is too large, and the rest is reported", async () => {
    const { folder, run, undo, warnings } = await workshop({ entries: 40 });
    await plant(folder);
    const many = Array.from({ length: 60 }, (_, index) => [`many/${index}`, "x"]);
    await folder.files(Object.fromEntries(many));
    await run("rm -rf ignored && rm -rf $nothing many");
    expect(warnings).toEqual([
      `No checkpoint of ${folder.path} before commands: it is too much. What they delete or overwrite there cannot be undone. Only ${folder.at("ignored")} can be restored.`,
    ]);
    await undo();
    expect(await folder.read("ignored/run.sh")).toBe("#!/bin/sh\n");
    expect(existsSync(folder.at("many"))).toBe(false);
  });

  it("checkpoints cost nothing for commands that destroy nothing, and little the second time", async () => {
    const { home, folder, run } = await workshop();
    await folder.files(Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f/${index}.txt`, `${index}`])));
    await run("ls", "cat f/1.txt", "git status");
    expect(existsSync(home.at("session-state/session-1/checkpoints"))).toBe(false);
    const checkpoints = new Checkpoints({ directory: home.at("other"), disk: nodeDisk, stamp: systemStamp });
    const keep = commandCheckpoints({ checkpoints, except: [home.path] });
    const coming = { text: "make", cwd: folder.path, roots: [folder.path], toolCallId: "call_1" };
    const times: number[] = [];
    for (let round = 0; round < 3; round++) {
      const begun = performance.now();
      await (await keep(coming))?.settle("command");
      times.push(performance.now() - begun);
    }
    console.log(`checkpoint of 500 files: ${times.map((time) => time.toFixed(0)).join(", ")} ms`);
    // One, whichever: a busy machine may need a second go for the first whole one.
    expect(readdirSync(home.at("other/checkpoints/packs"))).toHaveLength(2);
    expect(await checkpoints.changes()).toEqual([]);
  });
});
