import { type Stats, statSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { makePrivate } from "../lib/node/disk.ts";
import { TroupeError } from "../protocol/errors.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the state folder: `TROUPE_HOME`, else `COPILOT_HOME`, else `~/.troupe`. The first two may be relative to the
 * working directory. An empty or relative home folder is ignored.
 */
export function stateRoot(environment: Environment): string {
  const chosen = environment.TROUPE_HOME || environment.COPILOT_HOME;
  if (chosen) return resolve(chosen);
  const home = [environment.HOME ?? "", homedir()].find(isAbsolute) ?? registeredHome();
  return join(home, ".troupe");
}

/**
 * Makes the state folder private. Returns a message for the user if it was open to others. A home folder is left alone,
 * and a shared folder such as `/tmp` is only reported, because others need them.
 */
export function protectStateRoot(root: string, environment: Environment): string | undefined {
  const stat = statSync(root, { throwIfNoEntry: false });
  if (!stat?.isDirectory() || (stat.mode & OTHERS) === 0 || isHome(stat, environment)) return undefined;
  const isShared = (stat.mode & STICKY) !== 0 || dirname(root) === root;
  if (!isShared && makePrivate(root)) return `${root} was open to other users of this machine and is private now.`;
  const remedy = isShared ? "Set TROUPE_HOME to a folder of your own." : `Close it with: chmod 700 ${root}`;
  return `${root} is open to other users of this machine. ${remedy}`;
}

const OTHERS = 0o077;
const STICKY = 0o1000;

function isHome({ ino, dev }: Stats, { HOME: home = "" }: Environment): boolean {
  return [home, homedir()].some((path) => {
    const stat = isAbsolute(path) ? statSync(path, { throwIfNoEntry: false }) : undefined;
    return stat?.ino === ino && stat.dev === dev;
  });
}

/** Returns the home folder from the system's user database, ignoring `HOME`. */
function registeredHome(): string {
  try {
    const { homedir: home } = userInfo();
    if (isAbsolute(home)) return home;
  } catch {
    // The system does not know this user.
  }
  throw new TroupeError("configuration", "There is no home folder to keep state in.", {
    hint: "Set TROUPE_HOME to a folder.",
  });
}
