/** Opens the stored sessions that a command works on: those of this machine, or those of a database. */

import { nodeDisk } from "../../lib/node/disk.ts";
import { derivedFolder } from "../../runtime/cluster/derived-folder.ts";
import type { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import { stateRoot } from "../../runtime/home.ts";
import { pastSessions } from "../../runtime/knowledge/past-sessions.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../../runtime/runtime.ts";
import type { Arguments } from "../args.ts";
import { chosenDatabase } from "./database-url.ts";

export interface StoredSessions {
  readonly runtime: Runtime;
  /** Set if the sessions are in a database. */
  readonly remote?: RemoteSessions;
  /** Parent of what is derived from the sessions: the index and counts of usage. */
  readonly derived: string;
}

interface Options extends Pick<RuntimeOptions, "importModule"> {
  /** Never uses a database. */
  readonly isLocal?: boolean;
}

/** Runs a command on the chosen sessions, and closes everything after it. */
export async function useSessions<T>(
  given: Arguments,
  use: (stored: StoredSessions) => Promise<T>,
  { isLocal = false, ...options }: Options = {},
): Promise<T> {
  const url = isLocal ? undefined : chosenDatabase(given);
  const environment = process.env;
  if (url !== undefined) return useDatabase(url, use, options);
  const runtime = createRuntime({ environment, ...options });
  try {
    return await use({ runtime, derived: runtime.home });
  } finally {
    await runtime.close();
  }
}

async function useDatabase<T>(url: string, use: (stored: StoredSessions) => Promise<T>, options: Options): Promise<T> {
  const { RemoteSessions } = await import("../../runtime/cluster/remote-sessions.ts");
  const { wordErrors } = await import("../../runtime/cluster/cluster.ts");
  const home = stateRoot(process.env);
  const remote = await RemoteSessions.open({ url, home });
  const { store } = remote;
  const derived = derivedFolder(home, url);
  await nodeDisk.mkdir(derived);
  const past = pastSessions({ stateRoot: derived, store, disk: nodeDisk });
  const runtime = createRuntime({ environment: process.env, store, past, ...options });
  try {
    return await wordErrors(url, () => use({ runtime, remote, derived }));
  } finally {
    await runtime.close();
    await remote.close();
  }
}
