import { randomBytes } from "node:crypto";
import { fstatSync } from "node:fs";
import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { isOrdinary } from "../../lib/redact/redact-values.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { announce } from "../../server/joinable.ts";
import { serveStdio, serveTcp } from "../../server/serve.ts";
import { Server } from "../../server/server.ts";
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type Launcher, ownProgram } from "../launcher.ts";
import { write } from "../output/output.ts";
import { printMessage, sayLines } from "../output/print-message.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";

/** `troupe --headless`: sessions for client programs. With `--stdio`, stdout carries only messages. */
export async function headlessCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  const isStdio = given.has("stdio");
  const port = portOf(given);
  if (isStdio && port !== undefined) throw usage("Use either --stdio or --port.");
  const level = given.choice("log-level", ["none", "error", "warning", "info", "debug", "all"]) ?? "error";
  const idleSeconds = given.amount("session-idle-timeout", "any");
  keepStdoutClean();
  const token = takeToken();
  const environment = { ...process.env };
  const github = { tokenVariable: given.text("auth-token-env"), ambient: !given.has("no-auto-login") };
  const runtime = createRuntime({ environment, github, importModule: launcher.importModule });
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const report = (message: string): void => {
    if (level !== "none") sayLines(message);
  };
  const database = given.text("database");
  const server =
    database === undefined
      ? new Server({
          runtime,
          environment,
          cwd,
          defaults,
          program: ownProgram(),
          say: report,
          ...(idleSeconds !== undefined && { idleMs: idleSeconds * 1000 }),
        })
      : await gatewayOf(given, { url: database, home: runtime.home, say: report });
  const interrupted = new Promise<void>((resolve) => onInterrupt(resolve));
  try {
    if (isStdio) await Promise.race([serveStdio(server), interrupted]);
    else {
      const needsToken = !given.has("no-connection-token");
      const secret = needsToken ? (token ?? randomBytes(32).toString("base64url")) : undefined;
      const isOwned = token !== undefined && isPipe(1);
      if (secret !== undefined) {
        refuseWeak(secret, { isOwned });
        runtime.addSecret(secret);
      }
      const listening = await serveTcp(server, { port: port ?? 0, token: secret });
      const told = secret !== undefined && token === undefined;
      const forget = told ? await announce(runtime.home, { port: listening.port, token: secret }) : undefined;
      const forgetToken = told ? await tellToken(runtime.home, listening.port, secret) : undefined;
      await write(`troupe server listening on port ${listening.port}\n`);
      await Promise.race([listening.ended, interrupted, ...(isOwned ? [whenLeftAlone(server)] : [])]);
      await forget?.();
      await forgetToken?.(); // while this process has the port: the next owner writes its own file
      listening.close();
    }
  } finally {
    await server.close();
  }
  return exitCodes.done;
}

/** The server for sessions that workers run. */
async function gatewayOf(
  given: Arguments,
  { url, home, say }: { url: string; home: string; say: (message: string) => void },
) {
  const { RemoteSessions } = await import("../../runtime/cluster/remote-sessions.ts");
  const { Gateway } = await import("../../server/gateway/gateway.ts");
  const [pool, tenant] = [given.text("pool"), given.text("tenant")];
  const [repository, ref] = [given.text("repo"), given.text("ref")];
  const sessions = await RemoteSessions.open({ url, home, ...defined({ pool, tenant, repository, ref }) });
  return new Gateway({ sessions, say });
}

function portOf(given: Arguments): number | undefined {
  const port = given.amount("port", "whole");
  if (port !== undefined && port > 65_535) throw usage(`--port needs a number up to 65535, not "${port}".`);
  return port;
}

/**
 * Resolves when the server is orphaned. A program that starts a server with a token and reads its stdout owns it. If
 * the owner exited without stopping the server, and no other client is connected, the server ends.
 */
async function whenLeftAlone(server: { readonly hasClients: boolean }): Promise<void> {
  const { ppid } = process;
  await new Promise<void>((resolve) => {
    let looks = 0;
    const timer = setInterval(() => {
      looks = process.ppid !== ppid && !server.hasClients ? looks + 1 : 0;
      if (looks < 2) return;
      clearInterval(timer);
      resolve();
    }, ORPHAN_LOOK_MS);
  });
}

const ORPHAN_LOOK_MS = 1_500;

function isPipe(descriptor: number): boolean {
  const file = fstatSync(descriptor);
  return file.isFIFO() || file.isSocket();
}

/** Redirects console output to stderr, since stdout carries only messages. */
function keepStdoutClean(): void {
  for (const name of ["log", "info", "debug", "dir", "table"] as const) console[name] = console.error;
}

/** Returns the token of the environment, and removes it there so that child processes do not inherit it. */
function takeToken(): string | undefined {
  const { COPILOT_CONNECTION_TOKEN: token } = process.env;
  delete process.env.COPILOT_CONNECTION_TOKEN;
  return token || undefined;
}

const MIN_TOKEN_LENGTH = 16;
/** Programs that own their server choose the token themselves, and some choose short ones. */
const MIN_OWNED_LENGTH = 8;

/**
 * Throws for a token that can be guessed: every program of this machine can reach a port. A token that looks like
 * ordinary text cannot be masked in a session's output, so it counts as weak too.
 */
function refuseWeak(token: string, { isOwned }: { isOwned: boolean }): void {
  if (token.length >= MIN_TOKEN_LENGTH && !isOrdinary(token)) return;
  const hint = "Set it to the output of `openssl rand -hex 32`, or leave it out: then one is made.";
  const need = `at least ${MIN_TOKEN_LENGTH} characters that cannot be guessed`;
  if (!isOwned || token.length < MIN_OWNED_LENGTH) {
    throw new TroupeError("usage", `COPILOT_CONNECTION_TOKEN is too weak: it needs ${need}.`, { hint });
  }
  printMessage(`warning: COPILOT_CONNECTION_TOKEN is weak: it should have ${need}. ${hint}`);
}

/**
 * Writes the token to a private file: users who can read it may connect to the port. Returns a function that removes
 * it.
 */
async function tellToken(home: string, port: number, token: string): Promise<() => Promise<void>> {
  const folder = join(home, "server");
  const path = join(folder, `${port}.token`);
  await nodeDisk.mkdir(folder);
  await replaceFile(nodeDisk, path, token);
  printMessage(`clients need the connection token in ${path} (or set COPILOT_CONNECTION_TOKEN before the start)`);
  return () => nodeDisk.unlink(path).catch(() => undefined);
}
