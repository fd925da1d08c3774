import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname } from "node:path";
import { workingDirectory } from "../../context/working-directory.ts";
import { gitPrograms } from "../../lib/node/git.ts";
import { checkSandbox } from "../../runtime/permissions/sandbox-check.ts";
import type { Check, Finding } from "./finding.ts";

const WEAKER =
  "Without it, commands can read credentials and .env files, and reach the network and every file that you can change.";

/** Starts a command in the sandbox, with the profile that agents' commands get. */
export const sandbox: Check = async ({ environment, cwd, home }) => {
  const id = "machine.sandbox";
  const { state, detail } = await checkSandbox({ environment, cwd, stateRoot: home });
  switch (state) {
    case "works":
      return [{ id, status: "ok", summary: `sandbox: a command ran in it (${detail})` }];
    case "off":
      return [{ id, status: "warning", summary: "sandbox: switched off by TROUPE_SANDBOX", remedy: WEAKER }];
    case "refused":
      return [{ id, status: "problem", summary: `sandbox: required, and not usable: ${detail}`, remedy: INSTALL }];
    case "absent":
      return [{ id, status: "warning", summary: `sandbox: ${detail}`, remedy: `${INSTALL} ${WEAKER}` }];
  }
};

const INSTALL = "Install bubblewrap (the package bubblewrap) and allow user namespaces.";

export const git: Check = async ({ environment, cwd, root }) => {
  const id = "machine.git";
  const program = gitPrograms(environment as NodeJS.ProcessEnv, homedir()).find((path) => existsSync(path));
  if (program === undefined) {
    const remedy = "Install git. Worktrees, diffs of branches and the board by branch need it.";
    return [{ id, status: "warning", summary: "git: not found", remedy }];
  }
  const version = await outputOf(program, ["--version"]);
  const { gitRoot } = workingDirectory(cwd);
  const where = gitRoot === undefined ? "this folder is not a repository" : `repository ${root}`;
  return [{ id, status: "ok", summary: `${version ?? program}; ${where}` }];
};

const GIB = 1024 ** 3;

export const disk: Check = async ({ home }) => {
  let folder = home;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  return [spaceFinding(free, folder)];
};

export function spaceFinding(free: number, folder: string): Finding {
  const id = "machine.disk";
  const summary = `disk: ${(free / GIB).toFixed(1)} GiB free for ${folder}`;
  const remedy = "Free some space, or delete old sessions: troupe sessions delete <id>";
  if (free < GIB / 10) return { id, status: "problem", summary, remedy };
  return free < GIB ? { id, status: "warning", summary, remedy } : { id, status: "ok", summary };
}

function outputOf(program: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: 5_000 }, (error, stdout) => resolve(error ? undefined : stdout.trim()));
  });
}
