import { serveEditor } from "../../acp/acp.ts";
import { defined } from "../../lib/defined.ts";
import { version } from "../../runtime/version.ts";
import { createClient } from "../../sdk/sdk.ts";
import { inProcess } from "../../server/in-process.ts";
import type { Arguments } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type Launcher, ownProgram } from "../launcher.ts";
import { sayLines } from "../output/print-message.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";

/** `troupe --acp`: an agent for editors. stdout carries only messages. */
export async function acpCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  for (const name of ["log", "info", "debug", "dir", "table"] as const) console[name] = console.error;
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const environment = { ...process.env };
  const { importModule } = launcher;
  const connection = inProcess({ environment, cwd, defaults, say: sayLines, importModule, program: ownProgram() });
  const client = await createClient({ connection });
  onInterrupt(() => process.stdin.destroy());
  const program = ownProgram();
  const parts = { client, input: process.stdin, output: process.stdout, version, say: sayLines };
  await serveEditor({ ...parts, ...defined({ program }) }).catch((error: unknown) => {
    if (!process.stdin.destroyed) throw error;
  });
  return exitCodes.done;
}
