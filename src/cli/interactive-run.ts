/** Puts the interactive terminal together: a server in this process, its client, and the trust of the folder. */
import { readTrust, recordTrust } from "../catalog/trust.ts";
import { workingDirectory } from "../context/working-directory.ts";
import { nodeDisk } from "../lib/node/disk.ts";
import { systemStamp } from "../lib/stamp.ts";
import { stateRoot } from "../runtime/home.ts";
import { version } from "../runtime/version.ts";
import { executableItems } from "../runtime/workspace.ts";
import { createClient } from "../sdk/sdk.ts";
import { inProcess } from "../server/in-process.ts";
import type { FirstFrame } from "../terminal/first-frame.ts";
import { runTerminal, type SessionWish, type TrustQuestion } from "../terminal/terminal.ts";
import type { Arguments } from "./args.ts";
import type { Launcher } from "./launcher.ts";
import { sessionRequest } from "./prompt-mode.ts";

interface Parts {
  readonly launcher: Launcher;
  readonly first: FirstFrame;
  readonly wish: SessionWish;
}

export async function runInteractive(given: Arguments, { launcher, first, wish }: Parts): Promise<void> {
  const environment = { ...process.env };
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const home = stateRoot(environment);
  await runTerminal({
    ...{ input: process.stdin, output: process.stdout, first, environment, cwd, home, version, wish },
    connect: () =>
      createClient({ connection: inProcess({ environment, cwd, defaults, importModule: launcher.importModule }) }),
    trust: () => trustQuestion(cwd, { home, environment, isTrusted: given.has("trust-folder") }),
  });
}

/** Undefined when the folder brings nothing that is not trusted yet, or was trusted for this run. */
async function trustQuestion(
  cwd: string,
  where: { readonly home: string; readonly environment: NodeJS.ProcessEnv; readonly isTrusted: boolean },
): Promise<TrustQuestion | undefined> {
  if (where.isTrusted) return undefined;
  const { home, environment } = where;
  const folder = workingDirectory(cwd).gitRoot ?? cwd;
  const items = await executableItems(folder, { stateRoot: home, environment });
  const trust = readTrust(home).of(folder);
  if (items.every((item) => trust.check(item) === "approved")) return undefined;
  return {
    folder,
    items,
    async accept() {
      await recordTrust({ stateRoot: home, folder, disk: nodeDisk, stamp: systemStamp, items });
    },
  };
}
