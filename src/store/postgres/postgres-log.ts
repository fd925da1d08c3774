/** The log of one session in the database. */

import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { checkSize, cleanExtension, cleanName, nameAsset } from "../assets.ts";
import { failTo, storageError } from "../storage-error.ts";
import type { SessionLog } from "../store.ts";
import { encodeSummary } from "../summary.ts";
import type { CarriedFiles } from "./carried-files.ts";
import type { Database } from "./database.ts";
import { pageOf } from "./reading.ts";
import { type LoadedRows, readRows, writeRowSnapshot } from "./rows.ts";
import type { SessionFiles } from "./session-files.ts";
import { type GroupWriter, type LogTail, takenOver } from "./writer.ts";

export interface PostgresLogContext {
  readonly database: Database;
  readonly writer: GroupWriter;
  readonly tail: LogTail;
  readonly files: SessionFiles;
  readonly carried: CarriedFiles;
  readonly loaded: LoadedRows;
  readonly rules: number | undefined;
  release(): Promise<void>;
}

export function postgresLog(context: PostgresLogContext): SessionLog & { readonly fenced: AbortSignal } {
  const { database, writer, tail, files, loaded } = context;
  const { sessionId } = tail;
  let isClosed = false;
  const owned = async (): Promise<void> => {
    if (isClosed) throw closed();
    await tail.enter();
  };
  const besides = async <T>(action: string, work: () => Promise<T>): Promise<T> => {
    await owned();
    return work().catch(failTo(action));
  };
  const everything = async (): Promise<readonly SessionEvent[]> => {
    await writer.settled(tail);
    return (await readRows(database, sessionId)).events;
  };
  return {
    sessionId,
    fenced: tail.fenced.signal,
    directory: files.directory,
    events: loaded.events,
    removed: loaded.removed,
    count: loaded.count,
    damage: loaded.damage,
    heldBy: undefined,
    everything,
    async page(from, to) {
      await writer.settled(tail);
      return pageOf(database, sessionId, { from, to, isClean: loaded.damage.length === 0 });
    },
    async snapshot(now) {
      if (context.rules === undefined || loaded.removed.length > 0) return false;
      await writer.settled(tail);
      return writeRowSnapshot(database, { tail, rules: context.rules, ...now }).catch(() => false);
    },
    async append(event, { barrier }) {
      if (isClosed) throw closed();
      await writer.append(tail, event, barrier);
      if (event.type === "assistant.turn_end" && tail.epoch !== undefined) context.carried.soon(tail.epoch);
    },
    flush: () => writer.sync(tail),
    async repairAfterFailedWrite() {
      if (isClosed) throw closed();
      await repairAfterFailedWrite(context);
    },
    ...recordsOf(context, besides),
    async close() {
      if (isClosed) return;
      isClosed = true;
      try {
        if (tail.epoch !== undefined && !tail.failure) await writer.sync(tail);
      } finally {
        // Files that cannot be stored stay on this machine. The log is complete.
        if (tail.epoch !== undefined) await context.carried.carry(tail.epoch).catch(() => undefined);
        if (tail.epoch !== undefined) await context.release().catch(() => undefined);
      }
    },
  };
}

type Records = Pick<SessionLog, "writeAsset" | "readAsset" | "writeFile" | "readFile" | "writeSummary">;

/** Returns the methods for data beside the log. `besides` makes sure that this process has the session. */
function recordsOf(
  { database, tail, files }: PostgresLogContext,
  besides: <T>(action: string, work: () => Promise<T>) => Promise<T>,
): Records {
  return {
    writeAsset: (data, extension) =>
      besides("store a file", async () => {
        checkSize(data.byteLength);
        const { assetId, hash } = nameAsset(data);
        return { assetId, path: await files.addAsset(assetId, `${hash}${cleanExtension(extension)}`, data) };
      }),
    readAsset: (assetId) => files.asset(assetId),
    writeFile: (name, text) =>
      besides("store a file", () => {
        checkSize(Buffer.byteLength(text));
        return files.addNumbered(cleanName(name), text);
      }),
    readFile: (path) => files.text(path),
    writeSummary: (summary) =>
      besides("write the summary", async () => {
        const { count } = await database.query("update troupe.session set summary = $3 where id = $1 and epoch = $2", [
          tail.sessionId,
          tail.epoch,
          encodeSummary(summary),
        ]);
        if (count === 0) throw takenOver(tail.sessionId);
      }),
  };
}

/** Removes lines that were stored but never acknowledged, and restores acknowledged ones that the server lost. */
async function repairAfterFailedWrite({ database, writer, tail }: PostgresLogContext): Promise<void> {
  await writer.settled(tail);
  if (!tail.failure) return;
  if (tail.epoch === undefined) {
    tail.failure = undefined;
    return;
  }
  if (tail.fenced.signal.aborted) throw tail.failure;
  const { sessionId, epoch, acknowledged, unsynced } = tail;
  try {
    await database.transaction(async (queries) => {
      const { rows } = await queries.query<{ last: string }>(
        "select last_seq::text as last from troupe.session where id = $1 and epoch = $2 for update",
        [sessionId, epoch],
      );
      const row = rows[0];
      if (!row) throw takenOver(sessionId);
      await queries.query("delete from troupe.event where session_id = $1 and seq > $2", [sessionId, acknowledged.seq]);
      const missing = unsynced.filter(({ link }) => link.seq > Number(row.last));
      await queries.query(
        "insert into troupe.event select $1, e.seq, $2, e.line from unnest($3::bigint[], $4::text[]) as e(seq, line)",
        [sessionId, epoch, missing.map(({ link }) => link.seq), missing.map(({ text }) => text)],
      );
      await queries.query("update troupe.session set last_seq = $2 where id = $1", [sessionId, acknowledged.seq]);
    });
  } catch (error) {
    throw storageError("repair the session log", error);
  }
  tail.unsynced = [];
  tail.failure = undefined;
  tail.last = acknowledged;
}

const closed = (): TroupeError => new TroupeError("storage", "The session log is closed.");
