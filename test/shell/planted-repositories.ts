/**
 * Nested repositories that make git run a program, as a command would leave them in a workspace. Every program creates a
 * file with the planting's name in a canary folder. Used by the tests of the sandbox and by the adversarial tests.
 */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

interface Planting {
  readonly name: string;
  /** Lines of sh. `$evil` is the program as a line of sh; `plant` makes a repository in the folder `$name`, with a commit. */
  readonly script: string;
  /** Relative to the workspace; the planting's name if left out. */
  readonly folder?: string;
}

const config = (text: string): string => `plant; printf '${text}' >> $name/.git/config`;
const HOOK = `printf '#!/bin/sh\\n%s\\n' "$evil"`;

const PLANTINGS: readonly Planting[] = [
  { name: "fsmonitor", script: 'plant; git -C $name config core.fsmonitor "$evil"' },
  {
    name: "hooks-path",
    script: `plant; mkdir $name/h; ${HOOK} > $name/h/post-index-change; chmod +x $name/h/*; git -C $name config core.hooksPath h`,
  },
  {
    name: "include",
    script: `${config("[include]\\npath = ../inc\\n")}; git config -f $name/inc core.fsmonitor "$evil"`,
  },
  {
    name: "include-if",
    script: `${config('[includeIf "gitdir:**"]\\npath = ../inc\\n')}; git config -f $name/inc core.fsmonitor "$evil"`,
  },
  {
    name: "filter",
    script: `plant; git -C $name config filter.x.clean "$evil; cat"; echo '* filter=x' > $name/.gitattributes; echo two > $name/file`,
  },
  { name: "diff-external", script: 'plant; git -C $name config diff.external "$evil;:"; echo more > $name/file' },
  { name: "alias", script: 'plant; git -C $name config alias.st "!$evil"' },
  { name: "header-line", script: `${config('[core] fsmonitor = "\'"$evil"\'"\\n')}` },
  { name: "two-headers", script: `${config('[user][CORE]FsMonitor="\'"$evil"\'"\\n')}` },
  { name: "carriage-return", script: `${config('[core]\\r\\n\\tfsmonitor = "\'"$evil"\'"\\r\\n')}` },
  {
    name: "continuation",
    script: `${config('[user]\\nname = a \\\\\\n b\\n[core]\\nfsmonitor = \\\\\\n"\'"$evil"\'"\\n')}`,
  },
  { name: "comment", script: `${config('[core] # \\\\\\nfsmonitor = "\'"$evil"\'"\\n')}` },
  {
    name: "hook",
    script: `plant; mkdir -p $name/.git/hooks; ${HOOK} > $name/.git/hooks/post-index-change; chmod +x $name/.git/hooks/post-index-change`,
  },
  {
    name: "hooks-link",
    script: `plant; rm -rf $name/.git/hooks; mkdir $name/h; ${HOOK} > $name/h/post-index-change; chmod +x $name/h/*; ln -s ../h $name/.git/hooks`,
  },
  {
    name: "worktree-config",
    script: `plant; git -C $name config extensions.worktreeConfig true; git config -f $name/.git/config.worktree core.fsmonitor "$evil"`,
  },
  {
    name: "commondir",
    script: `plant; cp -r $name/.git $name/other; git config -f $name/other/config core.fsmonitor "$evil"; echo ../other > $name/.git/commondir`,
  },
  {
    name: "git-file",
    script:
      'plant; mv $name/.git store-$name; echo "gitdir: ../store-$name" > $name/.git; git config -f store-$name/config core.fsmonitor "$evil"',
  },
  {
    name: "git-file-package",
    script: `plant; mkdir -p node_modules/.store; mv $name/.git node_modules/.store/g; echo "gitdir: ../node_modules/.store/g" > $name/.git
      git config -f node_modules/.store/g/config core.fsmonitor "$evil"`,
  },
  {
    name: "git-link",
    script:
      'plant; mv $name/.git link-store; ln -s ../link-store $name/.git; git config -f link-store/config core.fsmonitor "$evil"',
  },
  {
    name: "commondir-space",
    script: `plant; mkdir "$name/.git/. "; cp -r $name/.git/objects $name/.git/refs $name/.git/config "$name/.git/. "
      git config -f "$name/.git/. /config" core.fsmonitor "$evil"; echo ". " > $name/.git/commondir`,
  },
  {
    name: "git-file-space",
    script: `plant; cp -r $name/.git .git/g1; mv $name/.git ".git/g1 "; git config -f ".git/g1 /config" core.fsmonitor "$evil"
      echo "gitdir: ../.git/g1 " > $name/.git`,
  },
  {
    name: "git-file-lines",
    script: `plant; cp -r $name/.git .git/g2; mv $name/.git ".git/g2
x"; git config -f ".git/g2
x/config" core.fsmonitor "$evil"; printf 'gitdir: ../.git/g2\\nx\\n' > $name/.git`,
  },
  {
    name: "bare-commondir",
    script: `plant; mv $name/.git common-$name; mv common-$name/HEAD $name; echo ../common-$name > $name/commondir
      git config -f common-$name/config alias.st "!$evil"`,
  },
  { name: "read-only", script: 'plant; git -C $name config core.fsmonitor "$evil"; chmod 555 $name/.git' },
  { name: "not-listed", script: 'plant; git -C $name config core.fsmonitor "$evil"; chmod 311 $name/.git' },
  { name: "not-listed-above", script: 'plant; git -C $name config core.fsmonitor "$evil"; chmod 311 $name' },
  {
    name: "hooks-not-listed",
    script: `plant; mkdir -p $name/.git/hooks; ${HOOK} > $name/.git/hooks/post-index-change; chmod +x $name/.git/hooks/post-index-change
      chmod 311 $name/.git/hooks`,
  },
  {
    name: "bare",
    script: `git init -q --bare $name; git config -f $name/config core.bare false; git config -f $name/config core.worktree .; git config -f $name/config core.fsmonitor "$evil"`,
  },
  { name: "package", folder: "node_modules/package", script: 'plant; git -C $name config core.fsmonitor "$evil"' },
  { name: "deep-package", folder: "a/node_modules/x/y", script: 'plant; git -C $name config core.fsmonitor "$evil"' },
  {
    name: "submodule",
    folder: "above/sub",
    script: `name=above plant; git -C above config user.name a; plant; mkdir -p above/.git/modules; mv $name/.git above/.git/modules/sub
      echo 'gitdir: ../.git/modules/sub' > $name/.git; git config -f above/.git/modules/sub/config core.fsmonitor "$evil"`,
  },
];

const folderOf = ({ name, folder = name }: Planting): string => folder;
export const plantedNames: readonly string[] = PLANTINGS.map(({ name }) => name);

/** A script for sh that plants all of them, each as a gitlink in the index of the workspace too. */
export function plantingScript(canaries: string): string {
  const each = PLANTINGS.map(
    (planting) => `name=${folderOf(planting)}; evil="touch ${join(canaries, planting.name)}; false"
${planting.script}
git update-index --add --cacheinfo "160000,$commit,$name"`,
  );
  return `exec 2>/dev/null
template=$(mktemp -d); git init -q $template; echo one > $template/file; git -C $template add file
git -C $template -c user.name=a -c user.email=a@b commit -qm one; commit=$(git -C $template rev-parse HEAD)
plant() { mkdir -p $name; cp -r $template/. $name; }
${each.join("\n")}
rm -rf $template; echo planted\n`;
}

export class PlantedWorkspace {
  readonly path: string;
  readonly canaries: string;
  readonly #environment: Record<string, string>;

  /** Makes a repository with one commit. `base` must exist. */
  constructor(base: string) {
    this.path = join(base, "workspace");
    this.canaries = join(base, "canaries");
    const home = join(base, "home");
    for (const folder of [this.path, this.canaries, home]) mkdirSync(folder);
    const identity = {
      GIT_AUTHOR_NAME: "a",
      GIT_AUTHOR_EMAIL: "a@b",
      GIT_COMMITTER_NAME: "a",
      GIT_COMMITTER_EMAIL: "a@b",
    };
    this.#environment = {
      PATH: process.env.PATH ?? "",
      HOME: home,
      GIT_CONFIG_NOSYSTEM: "1",
      TMPDIR: home,
      ...identity,
    };
    this.git(["init", "-q", "."]);
    this.git(["commit", "-q", "--allow-empty", "-m", "start"]);
  }

  git(args: readonly string[], folder = "."): string {
    const stdio = ["ignore", "pipe", "ignore"] as const;
    return execFileSync("git", args, {
      cwd: join(this.path, folder),
      env: this.#environment,
      stdio: [...stdio],
      encoding: "utf8",
    });
  }

  /** Plants without a sandbox. */
  plantPlainly(): void {
    execFileSync("sh", ["-c", plantingScript(this.canaries)], { cwd: this.path, env: this.#environment });
  }

  /** Uses git at the top and in each planted folder, as a user would. Returns the names of the plantings that ran. */
  async use(): Promise<string[]> {
    const ask = (args: readonly string[], folder: string): Promise<void> =>
      new Promise((resolve) => {
        const options = { cwd: join(this.path, folder), env: this.#environment, timeout: 20_000 };
        execFile("git", args, options, () => resolve());
      });
    await ask(["status"], ".");
    await ask(["diff", "--submodule=diff"], ".");
    await Promise.all(
      PLANTINGS.map(async (planting) => {
        for (const args of [["status"], ["diff"], ["st"]]) await ask(args, folderOf(planting));
      }),
    );
    // Otherwise an ordinary user cannot delete the workspace.
    spawnSync("chmod", ["-R", "u+rwx", this.path]);
    const ran = readdirSync(this.canaries).sort();
    for (const name of ran) rmSync(join(this.canaries, name));
    return ran;
  }

  /** The plantings that a plain `git status` at the top is enough for. */
  useAtTop(): string[] {
    try {
      this.git(["status"]);
    } catch {
      // A broken nested repository makes git fail. It must only not run anything.
    }
    return readdirSync(this.canaries).sort();
  }
}
