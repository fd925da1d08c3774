/** Links that a command leaves in a git folder do not make the user's git write elsewhere. */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { COMMIT, linkPlace, plantedLinks, useLink } from "./planted-links.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();

describe.runIf(works)("a link in a git folder", () => {
  it.each(Object.entries(plantedLinks))(
    "a link in a git folder is removed after the command: %s",
    async (_, attack) => {
      await using folder = await tempFolder();
      const place = linkPlace(folder.path);
      const warnings: string[] = [];
      await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
      const { path } = place.planted;
      await stage.run(`victim='${place.victim}'\n${attack.script}`, { cwd: path, roots: [path] });
      useLink(place, attack);
      expect(place.changed()).toEqual([]);
      expect(warnings.join("\n")).toMatch(/Removed the link .*: git would write through it/);

      await using control = await tempFolder();
      const plain = linkPlace(control.path);
      spawnSync("sh", ["-c", `victim='${plain.victim}'\n${attack.script}`], { cwd: plain.planted.path });
      useLink(plain, attack);
      expect(plain.changed(), "without the sandbox").not.toEqual([]);
    },
  );

  it("a link in a git folder is removed from the repository of a linked worktree too", async () => {
    await using folder = await tempFolder();
    const { planted, victim, changed } = linkPlace(folder.path);
    planted.git(["worktree", "add", "-q", "../tree"]);
    await using stage = await shellStage({ sandboxed: {} });
    const tree = folder.at("tree");
    const { output } = await stage.run(
      `for folder in "$(git rev-parse --git-dir)" "$(git rev-parse --git-common-dir)"; do ln -sf '${victim}' "$folder/COMMIT_EDITMSG"; done; ls -l ${planted.path}/.git/COMMIT_EDITMSG`,
      { cwd: tree, roots: [tree] },
    );
    expect(output).toContain(victim);
    planted.git(COMMIT);
    planted.git(["-C", tree, ...COMMIT]);
    expect(changed()).toEqual([]);
  });

  it("a link in a git folder is kept if it was there before, unless a command changes it", async () => {
    await using folder = await tempFolder();
    const { planted } = linkPlace(folder.path);
    const path = join(planted.path, ".git/logs");
    renameSync(path, folder.at("logs"));
    symlinkSync(folder.at("logs"), path);
    await using stage = await shellStage({ sandboxed: {} });
    const place = { cwd: planted.path, roots: [planted.path] };
    await stage.run("touch file; git add file", place);
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    await stage.run("rm .git/logs; ln -s /etc .git/logs", place);
    expect(existsSync(path)).toBe(false);
  });

  it("a link in a git folder is kept after it was moved aside when another command ends", async () => {
    await using folder = await tempFolder();
    const { planted } = linkPlace(folder.path);
    const git = join(planted.path, "n/.git");
    planted.git(["init", "-q", "n"]);
    rmSync(join(git, "hooks"), { recursive: true, force: true });
    symlinkSync("../../later", join(git, "hooks"));
    await using state = await tempFolder();
    const sandbox = createSandbox({ mode: "required", stateRoot: state.path });
    const request = { workspace: [planted.path], cwd: planted.path, ownTerminal: false, detached: false };
    const commands = [await sandbox.prepare(request), await sandbox.prepare(request)];
    mkdirSync(join(planted.path, "later"));
    symlinkSync("../../later", join(git, "description.blocked-abc123"));
    for (const command of commands) if (command.kind === "sandboxed") await command.release();
    await sandbox.close();
    const aside = readdirSync(git).filter((name) => name.includes(".blocked-"));
    expect(aside).toEqual([expect.stringMatching(/^hooks\.blocked-/)]);
    expect(readlinkSync(join(git, aside[0] ?? ""))).toBe("../../later");
  });
});
