/** Records of commands: where commands cannot write them, and what a forged one can do. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startTicks } from "../../src/lib/node/process-identity.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox, type SandboxMode } from "../../src/tools/shell/sandbox/sandbox.ts";
import { createShells } from "../../src/tools/shell/session-shells.ts";
import type { ShellRequest, Shells } from "../../src/tools/shell/shells.ts";
import { SECRET } from "../support/hostile.ts";
import { hasBubblewrap } from "./bubblewrap.ts";

const works = await hasBubblewrap();

interface Stage {
  readonly shells: Shells;
  readonly state: TempFolder;
  readonly files: string;
  readonly records: string;
  run(command: string, more?: Partial<ShellRequest>): ReturnType<Shells["run"]>;
}

/** As the runtime sets it up: tools may read the records, so they are among the roots of every request. */
async function withStage(mode: SandboxMode, test: (stage: Stage) => Promise<void>): Promise<void> {
  await using workspace = await tempFolder();
  await using state = await tempFolder();
  const [files, records] = [state.at("session-state/one/files"), state.at("session-state/one/records")];
  for (const folder of [files, records]) mkdirSync(folder, { recursive: true });
  const sandbox = createSandbox({ mode, stateRoot: state.path });
  const shells = createShells({ folder: records, sandbox });
  const roots = [workspace.path, files, records];
  const signal = new AbortController().signal;
  const request = { cwd: workspace.path, roots, mode: "sync", waitMs: 20_000, signal } as const;
  try {
    await test({ shells, state, files, records, run: (command, more) => shells.run({ command, ...request, ...more }) });
  } finally {
    await shells.closeAll();
    await sandbox.close();
  }
}

const read = (shells: Shells, shellId: string) =>
  shells.read({ shellId, waitMs: 0, signal: new AbortController().signal });

function victim(): ChildProcess & { pid: number } {
  const child = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child as ChildProcess & { pid: number };
}

const isAlive = ({ pid }: { pid: number }): boolean => (startTicks(pid) ?? "") !== "";

function forge(folder: string, { pid }: { pid: number }): void {
  const record = { shellId: "ev", command: "x", pid, started: startTicks(pid), mark: "detached-forged.0" };
  writeFileSync(join(folder, "shell-detached-ev-1.pid"), JSON.stringify(record));
  writeFileSync(join(folder, "shell-detached-ev-1.exit"), "");
  writeFileSync(join(folder, "shell-detached-ev-1.log"), "forged");
}

describe.runIf(works)("a sandboxed command", () => {
  it("a sandboxed command cannot write, replace or see the folder of records in any way", () =>
    withStage("required", async ({ run, records, files }) => {
      const { output } = await run(
        [
          `echo x > ${records}/evil; mkdir -p ${records}/evil-folder; mkfifo ${records}/evil-pipe`,
          `ln -s ${records} ${files}/way; echo x > ${files}/way/evil; mv ${records} ${files}/moved`,
          `ln -s ../records ${files}/up; echo x > ${files}/up/evil`,
          `echo x > ${files}/../records/evil; ln ${records}/* ${files}/ 2>&1`,
          `find ${records}/.. -type p -o -name 'shell*'; echo own > ${files}/own.txt; cat ${files}/own.txt`,
        ].join("\n"),
      );
      expect(output).toMatch(/own\n$/);
      expect(output).not.toMatch(/^\S*(?:\.pipe|shells-)/m);
      expect(readdirSync(records).filter((name) => !name.startsWith("shells-"))).toEqual([]);
      expect(readFileSync(join(files, "own.txt"), "utf8")).toBe("own\n");
    }));

  it("a sandboxed command cannot change the records of a detached command while that runs", () =>
    withStage("required", async ({ run, shells, records }) => {
      await run("echo first; sleep 300", { mode: "detached", shellId: "d" });
      const before = readdirSync(records).sort();
      await run(`rm -rf ${records}; for end in pid exit log; do echo 0 > ${records}/shell-detached-d-1.$end; done`);
      expect(
        readdirSync(records)
          .filter((name) => !name.startsWith("shells-"))
          .sort(),
      ).toEqual(before);
      expect(await read(shells, "d")).toMatchObject({ state: "detached" });
      expect(await shells.stop("d")).toMatchObject({ state: "stopped" });
    }));

  it("a sandboxed command does not start in a folder of the program's own state", () =>
    withStage("required", async ({ run, records }) => {
      await expect(run("true", { cwd: records })).rejects.toThrow(/stores its state there/);
    }));
});

describe("a forged record", () => {
  it("a forged record in a session's files shows nothing and stops no process", () =>
    withStage("off", async ({ run, shells, state, files }) => {
      const target = victim();
      writeFileSync(state.at("secret"), SECRET);
      await run("true");
      forge(files, target);
      expect(shells.list()).toEqual([]);
      await expect(read(shells, "ev")).rejects.toThrow(/no shell with the shellId ev/);
      await expect(shells.stop("ev")).rejects.toThrow(/no shell with the shellId ev/);
      symlinkSync(state.at("secret"), join(files, "shell-detached-ev-2.log"));
      await expect(read(shells, "ev")).rejects.toThrow(/no shell with the shellId ev/);
      expect(isAlive(target)).toBe(true);
    }));

  it("a forged record stops no process that lacks its mark, even with the right pid and start time", () =>
    withStage("off", async ({ shells, records }) => {
      const target = victim();
      forge(records, target);
      expect(shells.list()).toMatchObject([{ shellId: "ev", state: "exited" }]);
      await expect(shells.stop("ev")).rejects.toThrow(/already ended/);
      expect(isAlive(target)).toBe(true);
    }));

  it("a forged record does not hide a command of the same name that really runs", () =>
    withStage("off", async ({ run, shells, records }) => {
      const target = victim();
      const { shellId } = await run("sleep 300", { mode: "detached", shellId: "ev" });
      forge(records, target); // its name sorts before that of the real one
      expect(await read(shells, shellId)).toMatchObject({ state: "detached" });
      expect(await shells.stop(shellId)).toMatchObject({ state: "stopped" });
      expect(isAlive(target)).toBe(true);
    }));
});
