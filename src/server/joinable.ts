/**
 * Makes the server of a process joinable by other programs of the same user: it listens on a loopback port, and a private
 * file in the state folder, named by the process, has the port and its token.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { isSameProcess, startTime } from "../lib/node/process-identity.ts";
import type { Server } from "./server.ts";

export interface JoinableServer {
  readonly port: number;
  readonly token: string;
}

const folderOf = (home: string): string => join(home, "server");
const fileOf = (home: string, pid: number): string => join(folderOf(home), `${pid}.json`);

/** Resolves with a function that stops listening and removes the file. */
export async function makeJoinable(server: Server): Promise<() => Promise<void>> {
  const { serveTcp } = await import("./serve.ts");
  const token = randomBytes(32).toString("base64url");
  server.runtime.addSecret(token);
  const listening = await serveTcp(server, { port: 0, token });
  return stopWith(await announce(server.runtime.home, { port: listening.port, token }), listening);
}

const stopWith = (forget: () => Promise<void>, listening: { close(): void }) => async (): Promise<void> => {
  listening.close();
  await forget();
};

/** Writes the file of this process. Resolves with a function that removes it. */
export async function announce(home: string, { port, token }: JoinableServer): Promise<() => Promise<void>> {
  const path = fileOf(home, process.pid);
  await nodeDisk.mkdir(folderOf(home));
  await removeStale(home);
  const started = await startTime(process.pid);
  await replaceFile(nodeDisk, path, JSON.stringify({ pid: process.pid, started, port, token }));
  return () => nodeDisk.unlink(path).catch(() => undefined);
}

/** The server of a process; undefined when it has none, or the process is gone. */
export async function joinableServer(home: string, pid: number): Promise<JoinableServer | undefined> {
  try {
    const stored = JSON.parse(await readFile(fileOf(home, pid), "utf8")) as Readonly<Record<string, unknown>>;
    const { started, port, token } = stored;
    if (typeof port !== "number" || typeof token !== "string") return undefined;
    return (await isSameProcess(pid, typeof started === "string" ? started : "")) ? { port, token } : undefined;
  } catch {
    return undefined;
  }
}

/** Files of processes that were killed. */
async function removeStale(home: string): Promise<void> {
  for (const name of await readdir(folderOf(home))) {
    const pid = Number(/^(\d+)\.json$/.exec(name)?.[1]);
    if (Number.isInteger(pid) && !(await joinableServer(home, pid))) {
      await nodeDisk.unlink(fileOf(home, pid)).catch(() => undefined);
    }
  }
}
