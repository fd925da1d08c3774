import { execFile, execFileSync } from "node:child_process";
import { appendFile, chmod, mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TempFolder } from "../../src/testing/temp-folder.ts";

/**
 * A repository that names a program in every place where git would run one. Each leaves a file with the name of its
 * place when it runs.
 */
export interface HostileRepository {
  readonly path: string;
  /** A bare repository inside, which a careless git takes for its own. */
  readonly bare: string;
  /** Which programs have run since the last time. */
  ran(): Promise<string[]>;
  /** Git as anyone would call it, without protection. */
  plain(args: readonly string[], options?: PlainOptions): Promise<string>;
}

interface PlainOptions {
  readonly cwd?: string;
  readonly variables?: Readonly<Record<string, string>>;
}

export async function hostileRepository(folder: TempFolder): Promise<HostileRepository> {
  const path = folder.at("repository");
  const canary = folder.at("canary");
  await mkdir(canary);
  const home = folder.at("home");
  await mkdir(home);
  const env = { PATH: process.env.PATH ?? "", HOME: home, GIT_TERMINAL_PROMPT: "0", TERM: "xterm" };
  const git = (args: readonly string[], cwd = path): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
      cwd,
      env,
      stdio: ["ignore", "pipe", "ignore"],
      encoding: "utf8",
    });
  /** A program that leaves its mark and then does as little harm as it can. */
  const program = async (name: string, then = "exit 0"): Promise<string> => {
    const file = folder.at(`programs/${name}`);
    await folder.files({ [`programs/${name}`]: `#!/bin/sh\ntouch ${canary}/${name}\n${then}\n` });
    await chmod(file, 0o755);
    return file;
  };

  execFileSync("git", ["init", "-q", "-b", "main", path], { env });
  await folder.files({
    "repository/plain.txt": "one\n",
    "repository/filtered.dat": "one\n",
    "repository/processed.bin": "one\n",
    "repository/converted.cnv": "one\n",
    "repository/drawn.drv": "one\n",
    "repository/.gitattributes":
      "*.dat filter=evil\n*.bin filter=process.evil\n*.cnv diff=conv\n*.drv diff=draw\n*.txt merge=evil\n",
  });
  git(["add", "."]);
  git(["commit", "-q", "-m", "first"]);
  await addSubmodule(folder, { git, program });
  await addSignedCommit(git);
  for (const name of ["plain.txt", "filtered.dat", "processed.bin", "converted.cnv", "drawn.drv"]) {
    await appendFile(join(path, name), "two\n");
  }
  await utimes(join(path, "plain.txt"), 1, 1);
  await addBareRepository(folder, { git, program });
  await addHooks(path, program);
  await addMissingObject(folder, { git, program });

  const settings: readonly (readonly [string, string])[] = [
    ["core.fsmonitor", await program("fsmonitor", "exit 1")],
    ["core.pager", await program("pager", "cat")],
    ["core.sshCommand", await program("ssh", "exit 1")],
    ["core.gitProxy", await program("proxy", "exit 1")],
    ["core.askPass", await program("askpass", "exit 1")],
    ["core.editor", await program("editor")],
    ["sequence.editor", await program("sequence-editor")],
    ["diff.external", await program("diff-external")],
    ["diff.draw.command", await program("diff-command")],
    ["diff.conv.textconv", await program("textconv", 'cat "$1"')],
    ["filter.evil.clean", await program("filter-clean", "cat")],
    ["filter.evil.smudge", await program("filter-smudge", "cat")],
    ["filter.evil.required", "true"],
    ["filter.process.evil.process", await program("filter-process", "exit 1")],
    ["merge.evil.driver", await program("merge-driver")],
    ["credential.helper", await program("credential-helper")],
    ["gpg.program", await program("gpg", "exit 1")],
    ["log.showSignature", "true"],
    ["alias.evil", `!${await program("alias")}`],
    ["alias.status", `!${await program("alias-status")}`],
    ["status.submoduleSummary", "true"],
    ["diff.submodule", "log"],
    ["submodule.recurse", "true"],
  ];
  for (const [name, value] of settings) git(["config", name, value]);

  const ran = async (): Promise<string[]> => {
    const names = (await readdir(canary)).sort();
    for (const name of names) await rm(join(canary, name));
    return names;
  };
  await ran();
  return {
    path,
    bare: join(path, "vendor", "bare"),
    ran,
    plain: (args, { cwd = path, variables = {} } = {}) =>
      new Promise((resolve) => {
        const options = { cwd, env: { ...env, ...variables }, timeout: 5000 };
        const child = execFile("git", args, options, (_error, stdout) => resolve(stdout));
        child.stdin?.on("error", () => undefined); // most commands end without reading it
        child.stdin?.end("protocol=https\nhost=example.invalid\n\n");
      }),
  };
}

interface Hands {
  git(args: readonly string[], cwd?: string): string;
  program(name: string, then?: string): Promise<string>;
}

/** A repository within, with a configuration of its own. */
async function addSubmodule(folder: TempFolder, { git, program }: Hands): Promise<void> {
  const inner = folder.at("repository/inner");
  await folder.files({ "repository/inner/file.txt": "one\n" });
  git(["init", "-q", "-b", "main"], inner);
  git(["add", "."], inner);
  git(["commit", "-q", "-m", "inner"], inner);
  git(["config", "core.fsmonitor", await program("inner-fsmonitor", "exit 1")], inner);
  await folder.files({ "repository/.gitmodules": '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n' });
  git(["add", ".gitmodules", "inner"]);
  git(["commit", "-q", "-m", "submodule"]);
  await appendFile(join(inner, "file.txt"), "two\n");
}

/** A signature makes git ask whoever the configuration names whether it is good. */
async function addSignedCommit(git: Hands["git"]): Promise<void> {
  const commit = git(["cat-file", "commit", "HEAD"]);
  const signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n";
  const end = commit.indexOf("\n\n");
  const path = git(["rev-parse", "--absolute-git-dir"]).trim();
  await writeFile(join(path, "signed"), `${commit.slice(0, end + 1)}${signature}${commit.slice(end + 1)}`);
  const id = git(["hash-object", "-t", "commit", "-w", join(path, "signed")]).trim();
  git(["update-ref", "HEAD", id]);
}

async function addBareRepository(folder: TempFolder, { git, program }: Hands): Promise<void> {
  const bare = folder.at("repository/vendor/bare");
  await mkdir(bare, { recursive: true });
  git(["init", "-q", "--bare", "."], bare);
  git(["config", "core.bare", "false"], bare);
  git(["config", "core.worktree", "."], bare);
  git(["config", "core.fsmonitor", await program("bare-fsmonitor", "exit 1")], bare);
}

async function addHooks(path: string, program: Hands["program"]): Promise<void> {
  const hook = await program("hook");
  for (const name of [
    "post-index-change",
    "post-checkout",
    "pre-commit",
    "fsmonitor-watchman",
    "reference-transaction",
  ]) {
    await writeFile(join(path, ".git", "hooks", name), `#!/bin/sh\nexec ${hook}\n`, { mode: 0o755 });
  }
}

/** Git fetches an object that is not there from whoever promised it, with a program that the configuration names. */
async function addMissingObject(folder: TempFolder, { git, program }: Hands): Promise<void> {
  await folder.files({ "repository/absent.txt": "soon gone\n" });
  git(["add", "absent.txt"]);
  git(["commit", "-q", "-m", "absent"]);
  const id = git(["rev-parse", "HEAD:absent.txt"]).trim();
  await rm(folder.at(`repository/.git/objects/${id.slice(0, 2)}/${id.slice(2)}`));
  for (const [name, value] of [
    ["core.repositoryFormatVersion", "1"],
    ["extensions.partialClone", "far"],
    ["remote.far.promisor", "true"],
    ["remote.far.url", folder.at("repository/inner")],
    ["remote.far.uploadpack", await program("upload-pack", "exit 1")],
  ] as const) {
    git(["config", name, value]);
  }
}
