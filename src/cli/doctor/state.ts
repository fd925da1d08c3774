import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { isObject, parseJson } from "../../lib/json.ts";
import { makePrivate, nodeDisk, writeNewFile } from "../../lib/node/disk.ts";
import { bootId, isSameProcess, pidNamespace } from "../../lib/node/process-identity.ts";
import { plural } from "../../lib/text.ts";
import { type Check, type CheckContext, type Finding, reasonOf } from "./finding.ts";

const OTHERS = 0o077;

/** Checks that the state folder can be written, is private, and how large it is. */
export const stateFolder: Check = async ({ home }) => {
  if (!existsSync(home)) return [{ id: "state.folder", status: "ok", summary: `${home} does not exist yet` }];
  const bytes = sizeOf(home);
  const size = `${(bytes.sum / 1024 ** 2).toFixed(1)} MiB${bytes.isComplete ? "" : " and more"}`;
  return [{ id: "state.folder", status: "ok", summary: `${home}, ${size}` }, await writable(home), ...privacy(home)];
};

async function writable(home: string): Promise<Finding> {
  const id = "state.writable";
  const path = join(home, `doctor-${process.pid}.tmp`);
  try {
    await writeNewFile(nodeDisk, path, [Buffer.from("troupe\n")]);
    await nodeDisk.unlink(path);
    return { id, status: "ok", summary: "writable" };
  } catch (error) {
    const remedy = "Change its owner or mode, or set TROUPE_HOME to another folder.";
    return { id, status: "problem", summary: `cannot be written: ${reasonOf(error)}`, remedy };
  }
}

/** Folders inside the state folder that others can open. The state folder itself is closed at every start. */
function privacy(home: string): Finding[] {
  const id = "state.permissions";
  const folders = [
    home,
    ...readdirSync(home, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [join(home, entry.name)] : [],
    ),
  ];
  const open = folders.filter((folder) => (statSync(folder).mode & OTHERS) !== 0);
  if (open.length === 0) return [{ id, status: "ok", summary: "private: other users have no access" }];
  return open.map((folder) => ({
    id,
    status: "warning",
    summary: `${folder} is open to other users`,
    remedy: `Run: chmod 700 ${folder}`,
    fix: async () => {
      if (!makePrivate(folder)) throw new Error("permission denied");
      return `${folder} is private now`;
    },
  }));
}

const MAX_ENTRIES = 200_000;

/** Adds up the sizes of all files. Stops counting after `MAX_ENTRIES`. */
function sizeOf(folder: string): { sum: number; isComplete: boolean } {
  let [sum, seen] = [0, 0];
  const pending = [folder];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const entry of entriesOf(next)) {
      if (++seen > MAX_ENTRIES) return { sum, isComplete: false };
      const path = join(next, entry.name);
      if (entry.isDirectory()) pending.push(path);
      else if (entry.isFile()) sum += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    }
  }
  return { sum, isComplete: true };
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

const LOGS_MS = 5_000;

/** Reads the newest logs for a few seconds, and looks for locks of processes that are gone. */
export const logs: Check = async (context) => {
  const ids = await context.runtime.store.ids();
  return [...(await staleLocks(ids, context)), ...(await damagedLogs(ids, context))];
};

async function staleLocks(ids: readonly string[], { home, runtime }: CheckContext): Promise<Finding[]> {
  const stale: string[] = [];
  for (const id of ids) if (await isStale(join(home, "session-state", id, "lock"))) stale.push(id);
  if (stale.length === 0) return [{ id: "state.locks", status: "ok", summary: "no locks of processes that are gone" }];
  return [
    {
      id: "state.locks",
      status: "warning",
      summary: `${plural(stale.length, "lock")} of processes that are gone: ${stale.slice(0, 3).join(", ")}`,
      remedy: "They do no harm: the next process takes over.",
      fix: async () => {
        for (const id of stale) await (await runtime.store.open(id)).close();
        return `released ${plural(stale.length, "lock")} of processes that are gone`;
      },
    },
  ];
}

/** True for a lock whose process ran on this boot of this machine, in this namespace, and is gone; or on an earlier boot. */
async function isStale(path: string): Promise<boolean> {
  const json = parseJson(readIfThere(path));
  if (!json.ok || !isObject(json.value)) return false;
  const { pid, started, host, boot, pids } = json.value as Readonly<Record<string, unknown>>;
  if (host !== hostname() || typeof pid !== "number") return false;
  if (boot !== bootId()) return true;
  return pids === pidNamespace() && !(await isSameProcess(pid, typeof started === "string" ? started : ""));
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

async function damagedLogs(ids: readonly string[], { runtime }: CheckContext): Promise<Finding[]> {
  const id = "state.logs";
  const began = performance.now();
  const damaged: Finding[] = [];
  let read = 0;
  for (const sessionId of ids) {
    if (performance.now() - began > LOGS_MS) break;
    read++;
    const problem = await problemOf(sessionId, runtime);
    if (problem !== undefined) {
      const summary = `session ${sessionId}: ${problem}`;
      const remedy = "The rest of the session is usable. Damaged bytes are kept beside the log.";
      damaged.push({ id, status: "warning", summary, remedy });
    }
  }
  const rest = ids.length - read;
  const scope = rest === 0 ? plural(read, "session") : `the newest ${read} of ${plural(ids.length, "session")}`;
  return [...damaged, { id, status: "ok", summary: `read ${scope}, ${damaged.length} damaged` }];
}

async function problemOf(sessionId: string, { store }: CheckContext["runtime"]): Promise<string | undefined> {
  let problem: string | undefined;
  try {
    for await (const _ of store.events(
      sessionId,
      ([first]) => (problem ??= first && `line ${first.line}: ${first.message}`),
    ));
  } catch (error) {
    return reasonOf(error);
  }
  return problem;
}

interface Database {
  prepare(sql: string): {
    get(): Readonly<Record<string, unknown>> | undefined;
    all(): readonly Readonly<Record<string, unknown>>[];
  };
  close(): void;
}

/** Checks the search index. It is derived from the logs, so a repair loses nothing. */
export const index: Check = async ({ runtime, launcher }) => {
  const id = "state.index";
  const { path } = runtime.past;
  const revisions = await runtime.store.revisions();
  if (!existsSync(path)) {
    const summary =
      revisions.length === 0 ? "search index: no sessions yet" : "search index: the next search writes it";
    return [{ id, status: "ok", summary }];
  }
  const rebuild = async (): Promise<string> =>
    `rebuilt the search index from ${plural((await runtime.past.reindex()).changed, "session")}`;
  const broken = (why: string): Finding => ({
    id,
    status: "warning",
    summary: `search index: ${why}`,
    fix: rebuild,
    remedy: "The next search rebuilds it; or run: troupe sessions reindex",
  });
  try {
    const { DatabaseSync } = (await launcher.importModule("@photostructure/sqlite")) as {
      DatabaseSync: new (path: string, options: { readOnly: boolean }) => Database;
    };
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      const sound = database.prepare("PRAGMA quick_check(1)").get()?.quick_check;
      if (sound !== "ok") return [broken(`damaged (${String(sound)})`)];
      const known = new Map(
        database
          .prepare("SELECT session_id, revision FROM indexed")
          .all()
          .map((row) => [row.session_id, row.revision]),
      );
      const stale = revisions.filter(({ sessionId, revision }) => known.get(sessionId) !== revision).length;
      if (stale === 0)
        return [{ id, status: "ok", summary: `search index: ${plural(known.size, "session")}, up to date` }];
      const refresh = async (): Promise<string> =>
        `added ${plural((await runtime.past.refresh()).changed, "session")} to the search index`;
      const summary = `search index: ${plural(stale, "session")} behind; the next search adds them`;
      return [{ id, status: "ok", summary, fix: refresh }];
    } finally {
      database.close();
    }
  } catch (error) {
    return [broken(reasonOf(error))];
  }
};
