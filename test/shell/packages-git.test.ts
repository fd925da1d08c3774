/** Repositories in `node_modules`: the user's own stay as they are, and git steps into none that a command prepared. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { CLEAN_UP_PROGRAM } from "../../src/tools/shell/sandbox/left-behind.ts";
import type { LeftBehind } from "../../src/tools/shell/sandbox/leftovers.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { PlantedWorkspace } from "./planted-repositories.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();

/** Options of find: all but what is planted. Some file systems change the size of a folder when an entry comes and goes. */
const [FOLDER, ENTRY] = ["%p %y %m\\n", "%p %y %m %s %l\\n"];
const LISTED = ["-not", "-path", "*other*", "(", "-type", "d", "-printf", FOLDER, "-o", "-printf", ENTRY, ")"];

/** Functions of sh for the commands below. */
const prelude = (planted: PlantedWorkspace): string => `exec 2>/dev/null; evil='touch ${planted.canaries}/ran; false'
  commit=$(git -C '${planted.path}' rev-parse HEAD)
  evil() { mkdir -p $1; git init -q $1; git -C $1 config core.fsmonitor "$evil"; }
  gitlink() { git update-index --add --cacheinfo "160000,$commit,$1"; }\n`;

describe.runIf(works)("a repository of the user in node_modules", () => {
  it("a user's repository in node_modules keeps hooks, configuration and links when the index names another", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    const at = (path: string) => `${planted.path}/${path}`;
    for (const path of ["node_modules/mine", "lib/node_modules"]) {
      mkdirSync(at(`${path}/.git/hooks`), { recursive: true });
      planted.git(["init", "-q", path]);
      planted.git(["config", "core.fsmonitor", "true"], path);
      spawnSync("sh", ["-c", "echo echo > .git/hooks/pre-commit; ln -s /tmp .git/logs"], { cwd: at(path) });
    }
    mkdirSync(at("node_modules/closed/x"), { recursive: true });
    chmodSync(at("node_modules/closed"), 0o311);
    spawnSync("bash", ["-c", "mkdir node_modules/$'y\\xff'; touch node_modules/$'y\\xff'/HEAD"], { cwd: planted.path });
    const list = () =>
      spawnSync("find", ["node_modules", "lib", ...LISTED], {
        cwd: planted.path,
        encoding: "latin1",
      }).stdout;
    const before = list();
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const where = { cwd: planted.path, roots: [planted.path] };
    await stage.run(`${prelude(planted)} evil node_modules/other; gitlink node_modules/other`, where);
    expect(warnings.join()).toContain("node_modules/other/.git/config");
    expect(warnings.join()).not.toMatch(/mine|lib|closed|renamed/);
    expect(list()).toBe(before);
    expect(planted.useAtTop()).toEqual([]);
    // The same where the index names one before the command.
    await stage.run("touch node_modules/mine/.git/new; rm node_modules/mine/.git/new", where);
    expect(list()).toBe(before);
    expect(existsSync(at("lib/node_modules/.git/hooks/pre-commit"))).toBe(true);
  });
});

describe.runIf(works)("git in the top folder after a command", () => {
  /** Commands, one after the other. */
  const attacks: Readonly<Record<string, readonly string[]>> = {
    "that an earlier command put into a package": ["evil node_modules/p", "gitlink node_modules/p"],
    "that an earlier command put into a package, while the index named another": [
      "evil node_modules/p; git init -q node_modules/q; gitlink node_modules/q",
      "touch file",
      "gitlink node_modules/p",
    ],
    "in a package that a repository in a package names": [
      "evil node_modules/p/deep; git init -q node_modules/p; (cd node_modules/p; gitlink deep); gitlink node_modules/p",
    ],
    "in a package behind a link that the index names": ["evil node_modules/p; ln -s node_modules/p way; gitlink way"],
    "in a package behind a link in a package": [
      "evil node_modules/p; git init -q node_modules/q; ln -s ../p node_modules/q/way; (cd node_modules/q; gitlink way); gitlink node_modules/q",
    ],
    "in a package that cannot be listed": ["evil node_modules/a/p; gitlink node_modules/a/p; chmod 311 node_modules/a"],
    "in a package whose name is not valid UTF-8": [
      "evil node_modules/p; x=node_modules/$(printf 'p\\377'); mv node_modules/p $x; gitlink $x",
    ],
    "in a package that the index of version 4 names": [
      "evil node_modules/p; mkdir node_modules/a; touch node_modules/a/x; git add -f node_modules/a/x; gitlink node_modules/p; git update-index --index-version 4",
    ],
    "in a package that the index names with an odd path": [
      `evil node_modules/p; git read-tree --empty; gitlink node_modules/x/p; head -c -20 .git/index | sed 's,node_modules/x/p,node_modules/./p,' > i
      sha1sum i | head -c 40 | sed 's/../\\\\x&/g' | xargs -0 /usr/bin/printf >> i; mv i .git/index`,
    ],
  };

  it.each(Object.entries(attacks))(
    "git in the top folder after a command runs no program hidden %s",
    async (_, commands) => {
      await using folder = await tempFolder();
      const planted = new PlantedWorkspace(folder.path);
      await using stage = await shellStage({ sandboxed: {} });
      for (const command of commands)
        await stage.run(prelude(planted) + command, { cwd: planted.path, roots: [planted.path] });
      expect(planted.useAtTop()).toEqual([]);
    },
  );

  it.each(Object.entries(attacks))(
    "git in the top folder runs no program hidden %s when troupe was killed before its check",
    async (_, commands) => {
      await using folder = await tempFolder();
      await using records = await tempFolder();
      const planted = new PlantedWorkspace(folder.path);
      const none = { gitFolders: [], gitLinks: [], linkedGit: [], protectedNames: [], unreadable: [] };
      const left: LeftBehind = { points: [], links: [], trees: [{ root: planted.path, ...none }] };
      const alone = (): void => {
        const input = `${JSON.stringify(left)}\n`;
        const { stderr } = spawnSync(process.execPath, ["-e", CLEAN_UP_PROGRAM, records.path], {
          input,
          encoding: "utf8",
        });
        expect(stderr).toBe("");
      };
      // After every command: what an earlier one made is old when the index names it.
      for (const command of commands) {
        spawnSync("sh", ["-c", prelude(planted) + command], { cwd: planted.path });
        alone();
      }
      expect(planted.useAtTop()).toEqual([]);
    },
  );

  it.each(Object.entries(attacks).filter(([name]) => !name.includes("link")))(
    "git in the top folder without a sandbox runs a program, hidden %s",
    async (_, commands) => {
      await using folder = await tempFolder();
      const planted = new PlantedWorkspace(folder.path);
      for (const command of commands) spawnSync("sh", ["-c", prelude(planted) + command], { cwd: planted.path });
      expect(planted.useAtTop()).toEqual(["ran"]);
    },
  );
});
