/**
 * Usage of all sessions. What was read from a log is stored with the log's revision in `usage-cache.json`, so that only
 * logs that changed are read again. The file is derived: it can be deleted at any time.
 */
import { join } from "node:path";
import { isObject, parseJson } from "../../lib/json.ts";
import { nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { smallText } from "../../lib/node/small-file.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { sessionUsage, type UsageRow } from "./session-usage.ts";

interface Known {
  readonly revision: string;
  readonly rows: readonly UsageRow[];
}

const VERSION = 1;
const MAX_BYTES = 256 * 1024 * 1024;

export interface AllUsage {
  readonly sessions: ReadonlyMap<string, readonly UsageRow[]>;
  readonly failed: readonly { readonly sessionId: string; readonly message: string }[];
}

export async function allUsage({ store, home }: Pick<Runtime, "store" | "home">): Promise<AllUsage> {
  const path = join(home, "usage-cache.json");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const known = readCache(path, zone);
  const current = new Map<string, Known>();
  const failed: { sessionId: string; message: string }[] = [];
  let isChanged = false;
  for (const { sessionId, revision } of await store.revisions()) {
    const before = known.get(sessionId);
    if (before?.revision === revision) {
      current.set(sessionId, before);
      continue;
    }
    try {
      current.set(sessionId, { revision, rows: await sessionUsage(store, sessionId) });
      isChanged = true;
    } catch (error) {
      failed.push({ sessionId, message: error instanceof Error ? error.message : String(error) });
    }
  }
  if (isChanged) await writeCache(path, zone, current);
  return { sessions: new Map([...current].map(([id, { rows }]) => [id, rows])), failed };
}

function readCache(path: string, zone: string): ReadonlyMap<string, Known> {
  const json = parseJson(smallText(path, MAX_BYTES) ?? "");
  const cache = json.ok && isObject(json.value) ? (json.value as Readonly<Record<string, unknown>>) : {};
  const isUsable = cache.version === VERSION && cache.zone === zone && isObject(cache.sessions);
  return isUsable ? new Map(Object.entries(cache.sessions as Record<string, Known>)) : new Map();
}

/** A cache that cannot be written only costs time. */
async function writeCache(path: string, zone: string, sessions: ReadonlyMap<string, Known>): Promise<void> {
  const content = JSON.stringify({ version: VERSION, zone, sessions: Object.fromEntries(sessions) });
  await replaceFile(nodeDisk, path, content).catch(() => undefined);
}
