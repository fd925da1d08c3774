/** Puts the interactive terminal together: a server in this process, its client, and the trust of the folder. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readTrust, recordTrust } from "../../catalog/trust.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { stateRoot } from "../../runtime/home.ts";
import type { SessionRequest } from "../../runtime/session-request.ts";
import { version } from "../../runtime/version.ts";
import { executableItems } from "../../runtime/workspace/workspace.ts";
import type { Client } from "../../sdk/client.ts";
import { createClient } from "../../sdk/sdk.ts";
import { joinServer } from "../../sdk/tcp.ts";
import { inProcess } from "../../server/in-process.ts";
import { joinableServer } from "../../server/joinable.ts";
import type { FirstFrame } from "../../terminal/first-frame.ts";
import type { TrustQuestion } from "../../terminal/open-session.ts";
import { runPlain } from "../../terminal/plain.ts";
import type { SessionChoice } from "../../terminal/session-choice.ts";
import { runTerminal } from "../../terminal/terminal.ts";
import type { Arguments } from "../args.ts";
import { sessionDatabase } from "../cluster/database-url.ts";
import { type Launcher, ownProgram } from "../launcher.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { isPort } from "./interactive.ts";

interface Parts {
  readonly launcher: Launcher;
  /** Undefined: print lines only. */
  readonly first: FirstFrame | undefined;
  readonly sessionChoice: SessionChoice;
  readonly notice: string | undefined;
}

export async function runInteractive(
  given: Arguments,
  { launcher, first, sessionChoice, notice }: Parts,
): Promise<void> {
  const environment = { ...process.env };
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const home = stateRoot(environment);
  const isAttaching = given.text("attach") !== undefined;
  const shared = {
    input: process.stdin,
    output: process.stdout,
    cwd,
    version,
    sessionChoice,
    notice,
    connect: () => connect(given, { environment, cwd, defaults, home, launcher }),
    join: (pid: number, onEnd: () => void) => joinProcess(home, pid, onEnd),
    trust: () =>
      trustQuestion(cwd, {
        home,
        environment,
        isTrusted: given.has("trust-folder") || isAttaching || sessionDatabase(given) !== undefined,
      }),
  };
  const attaches = isPort(given.text("attach") ?? "");
  const isModelChosen = given.text("model") !== undefined || Boolean(environment.TROUPE_MODEL);
  if (first) await runTerminal({ ...shared, first, environment, home, attaches, isModelChosen });
  else await runPlain(shared);
}

interface ConnectOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string;
  readonly defaults: Omit<SessionRequest, "cwd">;
  readonly launcher: Launcher;
}

/** A server in this process; with `--attach`, one that listens on a port of this machine. */
async function connect(
  given: Arguments,
  { environment, cwd, defaults, home, launcher }: ConnectOptions,
): Promise<Client> {
  const attach = given.text("attach");
  const url = sessionDatabase(given);
  if (url !== undefined) {
    const { inProcessGateway } = await import("../../server/gateway/in-process-gateway.ts");
    return createClient({ connection: inProcessGateway({ url, home }) });
  }
  if (attach === undefined || !isPort(attach)) {
    const { importModule } = launcher;
    const program = ownProgram();
    const options = { environment, cwd, defaults, importModule, program };
    return createClient({ connection: inProcess({ ...options, isJoinable: true }) });
  }
  const port = Number(attach);
  if (port < 1 || port > 65_535) {
    throw new TroupeError("usage", `--attach needs the port of a server, not "${attach}".`, {
      hint: "Start one with: troupe --headless --port 4711",
    });
  }
  const stored = await readFile(join(home, "server", `${port}.token`), "utf8").catch(() => "");
  const token = environment.COPILOT_CONNECTION_TOKEN || stored.trim();
  return createClient({ connection: { kind: "tcp", port, token } });
}

/** Connects to the server of another process of this user. `onEnd` is called when the connection ends. */
async function joinProcess(home: string, pid: number, onEnd: () => void): Promise<Client | undefined> {
  const server = await joinableServer(home, pid);
  if (!server) return undefined;
  const open = async () => {
    const transport = await joinServer({ kind: "tcp", host: "127.0.0.1", ...server });
    void transport.ended.then(onEnd);
    return transport;
  };
  return createClient({ connection: { kind: "custom", open } });
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
