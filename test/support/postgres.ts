/** Starts a private Postgres server on a unix socket and loopback port, where Debian's package or another one exists. */

import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface PostgresServer {
  readonly folder: string;
  readonly url: string;
  /** Ends the server as a crash would, if it has not ended, and starts it again. */
  crash(): void;
  stop(mode?: "fast" | "immediate"): void;
  start(): void;
  remove(): void;
}

/** Returns the folder of the server's programs, or `undefined` if Postgres is not installed or cannot run here. */
export function postgresPrograms(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const folders = existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, "bin")) : [];
  const found = [...folders.reverse(), "/usr/bin", "/usr/local/bin"].find((folder) =>
    existsSync(join(folder, "initdb")),
  );
  // The server refuses to run as root; it then needs the user that the package creates.
  if (found !== undefined && process.getuid?.() === 0 && postgresUser() === undefined) return undefined;
  return found;
}

function postgresUser(): { uid: number; gid: number } | undefined {
  const id = (flag: string): number =>
    Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout.trim() || "x");
  const [uid, gid] = [id("-u"), id("-g")];
  return Number.isNaN(uid) || Number.isNaN(gid) ? undefined : { uid, gid };
}

export interface PostgresSetup {
  /** Another address to listen on, for clients of the same /30 network. */
  readonly address?: string;
  /** An empty folder for everything (default: a new one). */
  readonly folder?: string;
}

export async function startPostgres(programs: string, setup: PostgresSetup = {}): Promise<PostgresServer> {
  const isRoot = process.getuid?.() === 0;
  const owner = isRoot ? postgresUser() : undefined;
  const folder = setup.folder ?? mkdtempSync(join(tmpdir(), "troupe-pg-"));
  const data = join(folder, "data");
  if (owner) chownSync(folder, owner.uid, owner.gid);
  const endWatcher = removedWithThisProcess({ programs, folder, owner });
  const run = (program: string, args: readonly string[]): void => runAs({ owner, cwd: folder }, program, args);
  const port = await freePort();
  run("cp", ["-a", emptyData(programs, owner), data]);
  const settings = [
    `listen_addresses = '${["127.0.0.1", ...(setup.address ? [setup.address] : [])].join()}'`,
    `port = ${port}`,
    "unix_socket_directories = ''",
    "max_connections = 200",
  ];
  writeFileSync(join(data, "postgresql.auto.conf"), `${settings.join("\n")}\n`);
  if (owner) chownSync(join(data, "postgresql.auto.conf"), owner.uid, owner.gid);
  if (setup.address) appendFileSync(join(data, "pg_hba.conf"), `host all all ${setup.address}/30 trust\n`);
  const control = (...args: string[]): void =>
    run(join(programs, "pg_ctl"), ["-D", data, "-w", "-t", "60", "-l", join(folder, "log"), ...args]);
  control("start");
  return {
    folder,
    url: `postgres://troupe@127.0.0.1:${port}/postgres`,
    crash: () => control("restart", "-m", "immediate"),
    stop: (mode = "fast") => control("stop", "-m", mode),
    start: () => control("start"),
    remove() {
      spawnSync(join(programs, "pg_ctl"), ["-D", data, "-m", "immediate", "-w", "stop"], { cwd: folder, ...owner });
      rmSync(folder, { recursive: true, force: true });
      endWatcher();
    },
  };
}

type Owner = { readonly uid: number; readonly gid: number } | undefined;

function runAs(how: { owner: Owner; cwd: string }, program: string, args: readonly string[]): void {
  const { status, stderr, stdout, error } = spawnSync(program, args, {
    cwd: how.cwd,
    encoding: "utf8",
    timeout: 120_000,
    stdio: ["ignore", "pipe", "pipe"],
    ...how.owner,
  });
  if (status !== 0) throw new Error(`${program} failed: ${stdout}${stderr}${error ?? ""}`);
}

let madeData: string | undefined;

/** The data folder of a new server, to be copied: `initdb` takes a second of processor time, so a process runs it once. */
function emptyData(programs: string, owner: Owner): string {
  if (madeData !== undefined) return madeData;
  const folder = mkdtempSync(join(tmpdir(), "troupe-pg-new-"));
  if (owner) chownSync(folder, owner.uid, owner.gid);
  removedWithThisProcess({ programs, folder, owner });
  const data = join(folder, "data");
  const args = ["-D", data, "-A", "trust", "-U", "troupe", "--no-sync", "-E", "UTF8", "--locale=C"];
  runAs({ owner, cwd: folder }, join(programs, "initdb"), args);
  madeData = data;
  return data;
}

/**
 * Stops the server and removes its folder when this process ends, whichever way: a shell in a session of its own waits
 * for the end of its input, which only this process holds open. Returns a function that ends the shell.
 */
function removedWithThisProcess(at: { programs: string; folder: string; owner: Owner }): () => void {
  const script = `cat > /dev/null; "$1/pg_ctl" -D "$2/data" -m immediate -w stop; rm -rf "$2"`;
  const watcher = spawn("sh", ["-c", script, "sh", at.programs, at.folder], {
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
    ...at.owner,
  });
  watcher.unref();
  // An open pipe would keep this process alive.
  (watcher.stdin as unknown as Socket).unref();
  return () => void watcher.stdin.end();
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
