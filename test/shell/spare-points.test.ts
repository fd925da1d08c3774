/** Mount points are moved into the workspace and back instead of being created and removed for each command. */
import { spawn } from "node:child_process";
import { linkSync, lstatSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startTicks } from "../../src/lib/node/process-identity.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import type { MountPoint } from "../../src/tools/shell/sandbox/leftovers.ts";
import { SparePoints } from "../../src/tools/shell/sandbox/spare-points.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();

async function stage(): Promise<{ folder: TempFolder; points: MountPoint[]; record: string }> {
  const folder = await tempFolder({ "w/file": "mine", "state/mounts-1.json": identity(process.pid) });
  const points: MountPoint[] = [
    { path: folder.at("w/.vscode"), kind: "folder" },
    { path: folder.at("w/.envrc"), kind: "file" },
    { path: folder.at("w/commondir"), kind: "commondir" },
  ];
  mkdirSync(folder.at("w/.vscode"));
  writeFileSync(folder.at("w/.envrc"), "");
  writeFileSync(folder.at("w/commondir"), ".\n");
  return { folder, points, record: folder.at("state/mounts-1.json") };
}

const identity = (pid: number): string => JSON.stringify({ pid, started: startTicks(pid) ?? "" });
const inodes = (points: readonly MountPoint[]): number[] => points.map(({ path }) => lstatSync(path).ino);

describe("spare mount points", () => {
  it("spare mount points are the same files and folders for the next command", async () => {
    const { folder, points } = await stage();
    await using _ = folder;
    const spare = new SparePoints(folder.at("state"));
    const before = inodes(points);
    expect(spare.putBack(points)).toEqual([]);
    expect(readdirSync(folder.at("w"))).toEqual(["file"]);
    expect(new SparePoints(folder.at("state")).take(points)).toEqual([]);
    expect(inodes(points)).toEqual(before);
  });

  it("spare mount points leave everything in place that another program has used", async () => {
    const { folder, points } = await stage();
    await using _ = folder;
    await folder.files({ "w/.vscode/settings.json": "mine", "w/.envrc": "mine", "w/commondir": "..\n" });
    const spare = new SparePoints(folder.at("state"));
    expect(spare.putBack(points)).toEqual(points);
    expect(await folder.read("w/.vscode/settings.json")).toBe("mine");
  });

  it("spare mount points notice a file in a folder that was empty before", async () => {
    const { folder, points } = await stage();
    await using _ = folder;
    const spare = new SparePoints(folder.at("state"));
    for (let round = 0; round < 2; round++) {
      expect(spare.putBack(points)).toEqual([]);
      expect(spare.take(points)).toEqual([]);
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    await folder.files({ "w/.vscode/settings.json": "mine" });
    expect(spare.putBack(points)).toEqual(points.slice(0, 1));
  });

  it("spare mount points replace nothing that exists", async () => {
    const { folder, points } = await stage();
    await using _ = folder;
    const spare = new SparePoints(folder.at("state"));
    spare.putBack(points);
    mkdirSync(folder.at("w/.vscode"));
    await folder.files({ "w/.envrc": "mine" });
    const { ino } = statSync(folder.at("w/.vscode"));
    expect(spare.take(points)).toEqual(points.slice(0, 2));
    expect([statSync(folder.at("w/.vscode")).ino, await folder.read("w/.envrc")]).toEqual([ino, "mine"]);
  });

  it("spare mount points are moved by one process at a time, and a lock of a killed process is ignored", async () => {
    const { folder, record } = await stage();
    await using _ = folder;
    const spare = new SparePoints(folder.at("state"));
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    await folder.files({ "state/other": identity(child.pid ?? 0) });
    linkSync(folder.at("state/other"), folder.at("state/points.lock"));
    let isOver = false;
    const work = spare.exclusively(record, (canMove) => {
      isOver = true;
      return canMove;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isOver).toBe(false);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
    expect(await work).toBe(true);
    expect(readdirSync(folder.at("state"))).not.toContain("points.lock");
    expect(await spare.exclusively(folder.at("missing"), (canMove) => canMove)).toBe(false);
  });
});

describe.runIf(works)("the mount points of a command", () => {
  it("the mount points of a command are reused from the last command", async () => {
    await using opened = await shellStage({ sandboxed: {} });
    const first = (await opened.run("stat -c %i .; ls -A")).output;
    expect(await opened.run("stat -c %i .; ls -A")).toMatchObject({ output: first });
    expect(readdirSync(opened.workspace.path)).toEqual([]);
    const spare = readdirSync(opened.state.at("sandbox/spare"));
    expect(spare.length).toBeGreaterThan(5);
    await opened.run("true");
    expect(readdirSync(opened.state.at("sandbox/spare"))).toHaveLength(spare.length);
    expect(readdirSync(opened.state.at("sandbox"))).not.toContain("points.lock");
  });
});
