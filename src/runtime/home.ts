import { homedir, userInfo } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { TroupeError } from "../protocol/errors.ts";

/**
 * Where troupe keeps its state: `TROUPE_HOME`, else `COPILOT_HOME`, else `~/.troupe`. A relative one of the first two is
 * meant from the working folder; a home folder that is empty or relative is none.
 */
export function stateRoot(environment: Readonly<Record<string, string | undefined>>): string {
  const chosen = environment.TROUPE_HOME || environment.COPILOT_HOME;
  if (chosen) return resolve(chosen);
  const home = [environment.HOME ?? "", homedir()].find(isAbsolute) ?? registeredHome();
  return join(home, ".troupe");
}

/** As the system has it, whatever `HOME` says. */
function registeredHome(): string {
  try {
    const { homedir: home } = userInfo();
    if (isAbsolute(home)) return home;
  } catch {
    // This user is not known to the system.
  }
  throw new TroupeError("configuration", "There is no home folder to keep state in.", {
    hint: "Set TROUPE_HOME to a folder.",
  });
}
