/**
 * Links in git folders through which git would write to a file outside the workspace, as a command would leave them. Used
 * by the tests of the sandbox and by the adversarial tests.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlantedWorkspace } from "./planted-repositories.ts";

export interface PlantedLink {
  /** Lines of sh in the workspace. `$victim` is a file of the user outside it. */
  readonly script: string;
  /** The git command that the user runs afterwards. */
  readonly use: readonly (readonly string[])[];
}

export const COMMIT = ["commit", "--allow-empty", "-m", "touch it"];
export const plantedLinks: Readonly<Record<string, PlantedLink>> = {
  "the message of a commit": { script: 'ln -sf "$victim" .git/COMMIT_EDITMSG', use: [COMMIT] },
  "the log of HEAD": { script: 'ln -sf "$victim" .git/logs/HEAD', use: [COMMIT] },
  "the folder of logs": {
    script: 'rm -rf .git/logs; ln -s "$(dirname "$victim")" .git/logs; git symbolic-ref HEAD refs/heads/victim',
    use: [COMMIT],
  },
  "the index": { script: 'touch file; ln -sf "$victim.new" .git/index', use: [["add", "file"]] },
  "a log of a branch among packages": {
    script: `mkdir -p .git/logs/refs/heads/node_modules; ln -s "$victim" .git/logs/refs/heads/node_modules/b
      git symbolic-ref HEAD refs/heads/node_modules/b`,
    use: [COMMIT],
  },
  "a log whose name is not text": {
    script: `d="$(printf 'd\\377')"; mkdir -p ".git/logs/refs/heads/$d"; ln -s "$victim" ".git/logs/refs/heads/$d/b"
      git symbolic-ref HEAD "refs/heads/$d/b"`,
    use: [COMMIT],
  },
  "the message of a commit in a new repository": {
    script: 'git init -q lib; ln -s "$victim" lib/.git/COMMIT_EDITMSG',
    use: [["-C", "lib", ...COMMIT]],
  },
  "the log of a new repository without a work tree": {
    script: `git init -q --bare lib; git config -f lib/config core.logAllRefUpdates true; mkdir -p lib/logs/refs/heads
      ln -s "$victim" lib/logs/refs/heads/main`,
    use: [["push", "-q", "lib", "HEAD:main"]],
  },
};

export interface LinkPlace {
  readonly planted: PlantedWorkspace;
  /** A file of the user outside the workspace. */
  readonly victim: string;
  /** The files outside that git has written. */
  changed(): string[];
}

export function linkPlace(base: string): LinkPlace {
  const planted = new PlantedWorkspace(base);
  const outside = join(base, "outside");
  mkdirSync(join(outside, "refs/heads"), { recursive: true });
  const victim = join(outside, "victim");
  const files = [victim, join(outside, "refs/heads/victim")];
  for (const file of files) writeFileSync(file, "mine\n");
  const isChanged = (file: string): boolean => readFileSync(file, "utf8") !== "mine\n";
  return { planted, victim, changed: () => [...files.filter(isChanged), ...[`${victim}.new`].filter(existsSync)] };
}

/** Uses git as the user would. */
export function useLink({ planted }: LinkPlace, { use }: PlantedLink): void {
  for (const args of use) {
    try {
      planted.git(args);
    } catch {
      // A broken repository makes git fail. It must only not write elsewhere.
    }
  }
}
