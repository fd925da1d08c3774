/** Turns what a call wants to touch into a question that `decide` can answer. */
import type { Access } from "../protocol/permission.ts";
import type { PermissionQuestion } from "./policy.ts";
import { analyseShell, loadShellParser } from "./shell/analyse.ts";

/** The parser is loaded when the first shell command is asked about. */
export async function questionFor(
  access: Access,
  call: { toolName: string; cwd: string },
): Promise<PermissionQuestion> {
  if (access.kind !== "shell") return { access, ...call };
  const analysis = analyseShell(await loadShellParser(), access.command);
  return { access, toolName: call.toolName, cwd: access.cwd, analysis };
}
