/** Nested repositories that a command creates run nothing when the user uses git in the workspace afterwards. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { PlantedWorkspace, plantedNames, plantingScript } from "./planted-repositories.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
/** The slow version also shows that each program would run without the sandbox, and uses git more often. */
const isSlow = process.env.TROUPE_SLOW !== undefined;

/** Dozens of git processes each: a busy machine needs more than the usual time. */
const slowly = { timeout: 600_000 };

describe("a planted repository without a sandbox", slowly, () => {
  it("a planted repository without a sandbox runs its program", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    planted.plantPlainly();
    expect(await planted.use()).toEqual([...plantedNames].sort());
  });
});

describe.runIf(works)("a planted repository in the sandbox", slowly, () => {
  it("a planted repository in the sandbox runs nothing after the command, and the user is notified", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const reply = await stage.run(plantingScript(planted.canaries), { cwd: planted.path, roots: [planted.path] });
    expect(reply.output).toBe("planted\n");
    expect(planted.useAtTop()).toEqual([]);
    expect(await planted.use()).toEqual([]);
    expect(warnings.join("\n")).toMatch(/Moved .*fsmonitor\/\.git\/config to .*: git would run programs by it/);
  });

  it("a planted repository is disarmed while a running command plants it, and so are later ones", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const late = `git init -q late; git -C late config core.fsmonitor 'touch ${planted.canaries}/late; false'`;
    const command = `${plantingScript(planted.canaries)}\nread -r line; ${late}; echo again; read -r line`;
    const { shellId } = await stage.run(command, { ...placeOf(planted), mode: "async", waitMs: 0 });
    const toldOf = (name: string) => expect.poll(() => warnings.join("\n"), { timeout: 60_000 }).toContain(name);
    // The script plants this one last.
    await toldOf("above/.git/modules/sub/config");
    expect(await planted.use()).toEqual([]);
    await stage.shells.write({ shellId, input: "go{enter}", waitMs: 0, signal: new AbortController().signal });
    await toldOf("late/.git/config");
    planted.git(["status"], "late");
    if (isSlow) expect(await planted.use()).toEqual([]);
    expect(stage.shells.list()).toMatchObject([{ state: "running" }]);
    await stage.shells.stop(shellId);
    expect(await planted.use()).toEqual([]);
  });

  it("a clean new repository continues to work, also for the next command", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const first = await stage.run(
      `git init -q made && git init -q --bare bare && git clone -q . cloned 2>/dev/null && git clone -q --bare . cloned-bare
      cd made && git config user.name a && git config user.email a@b && touch x && git add x && git commit -qm one && echo fine`,
      placeOf(planted),
    );
    expect(first.output).toBe("fine\n");
    const second = await stage.run(
      `cd made && echo 1 > x && git commit -qam two && git log --oneline | wc -l; cd ../cloned && git fetch -q && git status -sb | head -1
      git checkout -qb topic && git push -q ../bare topic && git -C ../bare log --oneline topic | wc -l`,
      placeOf(planted),
    );
    expect(second.output).toMatch(/^2\n## \S+\n1\n$/);
    expect(warnings).toEqual([]);
  });

  it("a worktree that a command adds continues to work, also for the next command", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one";
    await stage.run(
      `git worktree add -q tree; git init -q lib; cd lib; ${commit}; git worktree add -q ../second`,
      placeOf(planted),
    );
    const work = `${commit} && git log --oneline | wc -l`;
    const { output } = await stage.run(`(cd tree && ${work}); (cd second && ${work})`, placeOf(planted));
    expect(output).toBe("2\n2\n");
    expect(warnings).toEqual([]);
    for (const name of ["tree", "second"]) expect(planted.git(["status", "--short"], name)).toBe("");
  });

  it("planted repositories are checked in git folders of submodules at any depth and of any name", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    await using stage = await shellStage({ sandboxed: {} });
    const names = ["a/b", "a/b/c/d/e/f/g", "a/modules/b"];
    const plant = (name: string): string =>
      `mkdir -p lib/.git/modules/${name}; git init -q --bare lib/.git/modules/${name}; git config -f lib/.git/modules/${name}/config core.fsmonitor x`;
    await stage.run(`git init -q lib; ${names.map(plant).join("; ")}`, placeOf(planted));
    const dangerous = names.filter((name) => existsSync(join(planted.path, "lib/.git/modules", name, "config")));
    expect(dangerous).toEqual([]);
  });

  /** Steps of one attack: each is a command of its own, and harmless when seen alone. */
  const steps: Readonly<Record<string, readonly string[]>> = {
    "in a package whose repository was clean before": [
      "plant node_modules/p; gitlink node_modules/p",
      'printf \'[core]\\nfsmonitor = "%s"\\n\' "$evil" >> node_modules/p/.git/config',
    ],
    "in a package, together with another change of the index": [
      "plant node_modules/p; gitlink node_modules/p",
      'printf \'[core]\\nfsmonitor = "%s"\\n\' "$evil" >> node_modules/p/.git/config; touch new; git add new',
    ],
    "among the packages, moved to its place later": [
      'plant node_modules/.cache/p; git -C node_modules/.cache/p config core.fsmonitor "$evil"',
      "mv node_modules/.cache node_modules/there; gitlink node_modules/there/p",
    ],
    "in a package of a nested repository": [
      "plant lib; gitlink lib",
      'plant lib/node_modules/p; git -C lib/node_modules/p config core.fsmonitor "$evil"; cd lib; gitlink node_modules/p',
    ],
    "in a package of a nested repository whose index has it already": [
      "plant lib; gitlink lib; (cd lib; gitlink node_modules/p)",
      'plant lib/node_modules/p; git -C lib/node_modules/p config core.fsmonitor "$evil"',
    ],
    "in a package, its link in a shared index": [
      "plant node_modules/p; gitlink node_modules/p; git update-index --split-index",
      'printf \'[core]\\nfsmonitor = "%s"\\n\' "$evil" >> node_modules/p/.git/config',
    ],
    "in a folder of the session that commands can write": [
      'plant lib; mv lib/.git "$FILES/g"; echo "gitdir: $FILES/g" > lib/.git; gitlink lib; git config -f "$FILES/g/config" core.fsmonitor "$evil"',
    ],
    "in a folder that was a plain repository before": [
      "plant lib; gitlink lib",
      'git -C lib config core.fsmonitor "$evil"',
    ],
    "in the repository of a worktree": [
      'plant lib; git -C lib commit -q --allow-empty -m x; git -C lib worktree add -q ../tree; gitlink tree; git -C lib config core.fsmonitor "$evil"',
    ],
    "in the repository of a worktree that has no HEAD": [
      `mkdir -p store; plant lib; mv lib/.git store/.git; mkdir -p store/.git/worktrees/lib; mv store/.git/HEAD store/.git/worktrees/lib/
      echo ../.. > store/.git/worktrees/lib/commondir; echo "gitdir: ../store/.git/worktrees/lib" > lib/.git; gitlink lib`,
      'git config -f store/.git/config core.fsmonitor "$evil"',
    ],
    "in a folder that a worktree takes for its repository": [
      `mkdir -p foo; plant lib; mv lib/.git/* foo/; rm -rf lib/.git; mkdir -p foo/worktrees/lib; mv foo/HEAD foo/worktrees/lib/
      echo ../.. > foo/worktrees/lib/commondir; echo "gitdir: ../foo/worktrees/lib" > lib/.git; gitlink lib; git config -f foo/config core.fsmonitor "$evil"`,
    ],
    "in a folder that a link of git leads to": [
      'plant lib; mv lib/.git store; echo "gitdir: ../store" > lib/.git; gitlink lib',
      'printf \'[core]\\nfsmonitor = "%s"\\n\' "$evil" >> store/config; mv store s2; cp -r s2 store; git config -f store/config core.fsmonitor "$evil"',
    ],
    "in a folder that two dots behind a link lead to": [
      `mkdir -p .git/e/d sub; git init -q --bare sub/x; git init -q --bare .git/e/x; git config -f .git/e/x/config core.bare false
      git config -f .git/e/x/config core.fsmonitor "$evil"; ln -s ../.git/e/d sub/link; echo "gitdir: link/../x" > sub/.git; gitlink sub`,
    ],
    "behind a link that is turned later": [
      'plant lib; mv lib/.git store; ln -s store way; echo "gitdir: ../way" > lib/.git; gitlink lib',
      'cp -r store .git/store; git config -f .git/store/config core.fsmonitor "$evil"; ln -sfn .git/store way',
    ],
    "in a configuration that has a second name": [
      "plant lib; gitlink lib; ln lib/.git/config second",
      'printf \'[core]\\nfsmonitor = "%s"\\n\' "$evil" >> second',
    ],
    "in a link of git that has a second name": [
      'plant lib; mv lib/.git store; echo "gitdir: ../store" > lib/.git; gitlink lib; ln lib/.git second',
      'cp -r store .git/store; git config -f .git/store/config core.fsmonitor "$evil"; echo "gitdir: ../.git/store" > second',
    ],
    "below a protected name": [
      'plant d/.vscode; git -C d/.vscode config core.fsmonitor "$evil"',
      "gitlink $(echo d/.vscode*)",
    ],
    "below a protected name in a package": [
      'plant node_modules/p/.vscode; git -C node_modules/p/.vscode config core.fsmonitor "$evil"; gitlink node_modules/p/.vscode',
    ],
    "in the hooks of a repository": [
      'git init -q --bare bare; plant bare/hooks/x; git -C bare/hooks/x config core.fsmonitor "$evil"',
      "gitlink $(echo bare/hooks*/x)",
    ],
    "in a package that the index names with further bits": [
      `plant node_modules/p; git -C node_modules/p config core.fsmonitor "$evil"; git read-tree --empty; gitlink node_modules/p
      head -c 36 .git/index > i; printf '\\000\\000\\341\\244' >> i; tail -c +41 .git/index | head -c -20 >> i
      sha1sum i | head -c 40 | sed 's/../\\\\x&/g' | xargs -0 /usr/bin/printf >> i; mv i .git/index`,
    ],
    "in a repository that bytes in commondir name": [
      `plant lib; git -C lib commit -q --allow-empty -m x; git -C lib worktree add -q ../tree; gitlink tree; mkdir .git/ev; cp -r lib/.git .git/ev/.git
      git config -f .git/ev/.git/config core.fsmonitor "$evil"; ln -s .git/ev "$(printf 'b\\377')"; ln -s lib "$(printf 'b\\357\\277\\275')"
      printf '../../../../b\\377/.git\\n' > lib/.git/worktrees/tree/commondir`,
    ],
  };

  it.each(Object.entries(steps))("a planted repository does not run a program hidden %s", async (_, commands) => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    await using stage = await shellStage({ sandboxed: {} });
    const files = stage.state.at("session-files");
    mkdirSync(files);
    const prelude = `exec 2>/dev/null; export FILES='${files}' GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; evil='touch ${planted.canaries}/ran; false'
      commit=$(git -C '${planted.path}' rev-parse HEAD)
      plant() { mkdir -p $1; git init -q $1; }
      gitlink() { git update-index --add --cacheinfo "160000,$commit,$1"; }\n`;
    for (const command of commands)
      await stage.run(prelude + command, { cwd: planted.path, roots: [planted.path, files] });
    expect(planted.useAtTop()).toEqual([]);
    if (!isSlow) return;
    const control = await tempFolder();
    const plain = new PlantedWorkspace(control.path);
    for (const command of commands)
      spawnSync(
        "sh",
        ["-c", prelude.replaceAll(planted.path, plain.path).replaceAll(planted.canaries, plain.canaries) + command],
        { cwd: plain.path },
      );
    expect(plain.useAtTop(), "without the sandbox").toEqual(["ran"]);
    await control.remove();
  });
});

const placeOf = ({ path }: PlantedWorkspace): { cwd: string; roots: string[] } => ({ cwd: path, roots: [path] });
