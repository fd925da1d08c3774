/** Turns the access of a call into a question that `decide` can answer. */

import * as fs from "node:fs";
import { defined } from "../lib/defined.ts";
import type { Access } from "../protocol/permission.ts";
import { readDenials } from "./denied-files.ts";
import type { PermissionQuestion, Policy } from "./policy.ts";
import type { Rule } from "./rules.ts";
import { analyseShell, loadShellParser, type ShellAnalysis } from "./shell/analyse.ts";
import { onlyShowsFiles } from "./shell/free-reads.ts";

/** Loads the shell parser on the first shell command. */
export async function questionFor(
  access: Access,
  call: { toolName: string; cwd: string; policy: Policy },
): Promise<PermissionQuestion> {
  const { toolName, cwd, policy } = call;
  if (access.kind === "read" || access.kind === "write") {
    return { access, toolName, cwd, aliases: await aliasesOf(access.path, cwd, policy) };
  }
  if (access.kind !== "shell") return { access, toolName, cwd };
  const analysis = analyseShell(await loadShellParser(), access.command);
  const confined = await isConfined(access, { analysis, policy });
  return { access, toolName, cwd: access.cwd, analysis, ...(await containmentOf(access, policy)), ...confined };
}

/** Looks for a sandbox only when it could make a rule unnecessary. */
async function isConfined(
  access: Shell,
  { analysis, policy }: { analysis: ShellAnalysis; policy: Policy },
): Promise<Pick<PermissionQuestion, "confined">> {
  if (policy.containment === undefined || policy.allowances.askReads || !onlyShowsFiles(analysis)) return {};
  return (await policy.containment.confines(access)) ? { confined: true } : {};
}

type Shell = Extract<Access, { kind: "shell" }>;

/** Returns how the command would run, as far as known. Looks for a sandbox only when a denial depends on it. */
async function containmentOf(access: Shell, policy: Policy): Promise<Partial<PermissionQuestion>> {
  const { containment } = policy;
  const how = access.shellId === undefined ? {} : { folderUnknown: true };
  if (containment === undefined) return how;
  const { warning } = containment;
  const needed = policy.rules.some(({ effect, target }) => effect === "deny" && OUTSIDE_TEXT.has(target.kind));
  const held = needed
    ? { enforced: await containment.enforced(access), stored: (rule: Rule) => containment.stored(rule) }
    : {};
  return { ...how, ...held, ...defined({ warning }) };
}

/** Kinds of denials that cannot be enforced from the text of a command alone. */
const OUTSIDE_TEXT = new Set(["read", "write", "url"]);

/** Returns denied files that are the same file under another name. */
async function aliasesOf(path: string, cwd: string, policy: Policy): Promise<readonly string[]> {
  const { containment, resolvePath } = policy;
  if (containment === undefined || readDenials(policy).length === 0) return [];
  const stat = statOf(resolvePath(path, cwd));
  if (stat === undefined || !stat.isFile() || stat.nlink < 2) return [];
  const { paths } = await containment.files();
  return paths.filter((one) => {
    const other = statOf(one);
    return other?.dev === stat.dev && other.ino === stat.ino;
  });
}

function statOf(path: string): fs.Stats | undefined {
  try {
    return fs.statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
