/** The log of a session that a client stores. */

import { createHash } from "node:crypto";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { checkSize, cleanExtension, nameAsset } from "../assets.ts";
import type { Damage } from "../damage.ts";
import { type LogContent, parseLog } from "../log/read-log.ts";
import type { Position } from "../log/repair.ts";
import { visibleEvents } from "../log/rewound.ts";
import { LogWriter } from "../log/writer.ts";
import { failTo } from "../storage-error.ts";
import type { SessionLog } from "../store.ts";
import { encodeSummary } from "../summary.ts";
import type { ClientStoreFiles } from "./client-files.ts";

export const LOG = "events.jsonl";
export const SUMMARY = "workspace.yaml";
const INDEX = "checkpoints/index.md";
const ASSET_ID = /^sha256:([0-9a-f]{64})$/;

export interface ClientLogContext {
  readonly sessionId: string;
  readonly directory: string;
  readonly files: ClientStoreFiles;
  readonly stamp: Stamp;
  readonly content: LogContent;
  readonly damage: readonly Damage[];
  /** Called before every write. Throws when another log object is writing the session. */
  hold(): void;
  release(): void;
  /** Called after each append. */
  onAppended(): void;
}

/** Returns a log that appends its lines at a client. An append is acknowledged when the client has answered. */
export function clientLog(context: ClientLogContext): SessionLog {
  const { files, content, sessionId, hold } = context;
  const writer = clientWriter(context);
  const besides = async <T>(action: string, work: () => Promise<T>): Promise<T> => {
    hold();
    return work().catch(failTo(action));
  };
  const readAll = async (): Promise<readonly SessionEvent[]> =>
    parseLog(Buffer.from((await files.read(LOG)) ?? "")).events;

  return {
    sessionId,
    directory: context.directory,
    clientFiles: files,
    ...visibleEvents(content.events),
    count: visibleEvents(content.events).events.length,
    async page(from, to) {
      await writer.flush();
      return visibleEvents(await readAll()).events.slice(Math.max(0, from), Math.max(0, to));
    },
    snapshot: async () => false,
    async everything() {
      await writer.flush();
      return readAll();
    },
    damage: [...content.damage, ...context.damage],
    heldBy: undefined,
    append: (event, { barrier }) => writer.append(event, barrier),
    flush: () => writer.flush(),
    repairAfterFailedWrite: () => writer.repairAfterFailedWrite(),
    writeAsset: (data, extension) => besides("store a file", () => writeAsset(files, data, extension)),
    readAsset: (assetId) => readAsset(files, assetId),
    writeFile: (name, text) => besides("store a file", () => files.storeNumbered(name, text)),
    readFile: (path) => files.read(`temp/${lastPart(path)}`).catch(() => undefined),
    writeSummary: (summary) => besides("write the summary", () => files.write(SUMMARY, encodeSummary(summary))),
    async close() {
      try {
        await writer.close();
      } finally {
        context.release();
      }
    },
  };
}

/** Returns a writer that appends at the client. An append is durable once the client has answered: nothing is synced. */
function clientWriter({ files, content, stamp, hold, onAppended }: ClientLogContext): LogWriter {
  const position = { length: content.length, synced: content.length, last: content.last };
  let begun: Promise<void> | undefined;
  return new LogWriter({
    disk: {
      async write(_, bytes) {
        await files.append(LOG, Buffer.from(bytes).toString("utf8"));
        onAppended();
      },
      sync: async () => undefined,
      close: async () => undefined,
    },
    stamp,
    position: { ...position, lastLine: 0, doubtful: false },
    failure: undefined,
    async open() {
      hold();
      if (content.fileSize === 0) {
        begun ??= writeIndex(files);
        begun.catch(() => {
          begun = undefined;
        });
        await begun;
      }
      return 0;
    },
    restore: (known) => restore(files, known),
  });
}

/** Moves torn bytes at the end to `damaged/` and completes a missing newline. */
export async function repair(
  files: ClientStoreFiles,
  bytes: Buffer,
  content: LogContent,
): Promise<{ damage: Damage[]; content: LogContent }> {
  const { tail, length } = content;
  if (tail.kind === "clean") return { damage: [], content };
  const damage: Damage[] = [];
  if (tail.kind === "torn") {
    const torn = bytes.subarray(length);
    const name = createHash("sha256").update(torn).digest("hex").slice(0, 8);
    const savedTo = `damaged/${length}-${name}.txt`;
    await files.write(savedTo, torn.toString("utf8"));
    damage.push({ ...tail.damage, savedTo: files.nameOf(savedTo) });
  }
  const newline = tail.kind === "open" || tail.newline === "missing" ? "\n" : "";
  const whole = bytes.subarray(0, length).toString("utf8") + newline;
  await files.write(LOG, whole);
  return { damage, content: parseLog(Buffer.from(whole)) };
}

/**
 * Cuts off unacknowledged bytes: after a failed append it is unknown how much of it was written. Throws when the
 * acknowledged part has changed.
 */
async function restore(files: ClientStoreFiles, known: Position): Promise<void> {
  const bytes = Buffer.from((await files.read(LOG)) ?? "");
  const acknowledged = bytes.subarray(0, known.length);
  const { last } = parseLog(acknowledged);
  if (acknowledged.length < known.length || last.seq !== known.last.seq || last.crc !== known.last.crc) {
    throw new TroupeError(
      "storage",
      `${files.nameOf(LOG)} was changed by another program while this session wrote it.`,
      {
        hint: "Open the session again. The file will be checked and used as it is now.",
      },
    );
  }
  if (bytes.length > known.length) await files.write(LOG, acknowledged.toString("utf8"));
}

/** Creates the index of checkpoints with the session, so that readers find it before the first checkpoint. */
async function writeIndex(files: ClientStoreFiles): Promise<void> {
  await files.write(INDEX, "# Checkpoints\n");
}

/** Writes bytes as base64, because clients store only text. */
async function writeAsset(
  files: ClientStoreFiles,
  data: Uint8Array,
  extension: string,
): Promise<{ assetId: string; path: string }> {
  checkSize(data.byteLength);
  const { assetId, hash } = nameAsset(data);
  const existing = await findAsset(files, hash);
  const path = existing ?? `assets/${hash}${cleanExtension(extension)}`;
  if (existing === undefined) await files.write(path, Buffer.from(data).toString("base64"));
  return { assetId, path: files.nameOf(path) };
}

async function readAsset(files: ClientStoreFiles, assetId: string): Promise<Uint8Array | undefined> {
  const hash = ASSET_ID.exec(assetId)?.[1];
  const path = hash === undefined ? undefined : await findAsset(files, hash);
  const text = path === undefined ? undefined : await files.read(path);
  const data = text === undefined ? undefined : Buffer.from(text, "base64");
  return data && nameAsset(data).assetId === assetId ? data : undefined;
}

async function findAsset(files: ClientStoreFiles, hash: string): Promise<string | undefined> {
  const names = await files.list("assets");
  const found = names.find((name) => (name === hash || name.startsWith(`${hash}.`)) && !name.endsWith(".tmp"));
  return found === undefined ? undefined : `assets/${found}`;
}

const lastPart = (path: string): string => path.split(/[\\/]/).at(-1) ?? "";
