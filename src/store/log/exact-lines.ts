/** Copies logs between stores as the exact lines of `events.jsonl`, without their newlines. */

import { createReadStream, statSync } from "node:fs";
import { join } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { logPaths } from "../access.ts";
import { alreadyThere, checkSessionId } from "../session-id.ts";
import { failTo } from "../storage-error.ts";
import type { ExactLines } from "../store.ts";
import { decodeLine, NEWLINE, noRecord, type RecordLink } from "./line.ts";

/** Yields the lines and throws at the first one that no undamaged log has at its place. */
export async function* checkedLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let last: RecordLink = noRecord;
  let number = 0;
  for await (const line of lines) {
    number++;
    const decoded = decodeLine(Buffer.from(line));
    if (decoded.kind === "bad") throw lineError(number, decoded.message);
    if (decoded.kind === "plain") {
      last = { seq: number, crc: 0 };
    } else {
      if (decoded.seq !== last.seq + 1 || decoded.prev !== last.crc) {
        throw lineError(number, "It does not follow the line before it.");
      }
      last = decoded;
    }
    yield line;
  }
  if (number === 0) throw new TroupeError("usage", "The session was not imported: there are no lines.");
}

/** Splits at newlines alone: a line may contain other separators, such as U+2028. A last line without one counts. */
export async function* splitLines(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
      yield Buffer.concat([...rest, piece.subarray(start, end)]).toString("utf8");
      rest = [];
      start = end + 1;
    }
    if (start < piece.length) rest.push(piece.subarray(start));
  }
  if (rest.length > 0) yield Buffer.concat(rest).toString("utf8");
}

function lineError(number: number, why: string): TroupeError {
  return new TroupeError("usage", `The session was not imported: line ${number} cannot be used. ${why}`, {
    hint: "Import the unchanged output of: troupe sessions export <id> --exact",
  });
}

const PIECE_BYTES = 256 * 1024;

/** The exact lines of logs in a folder of sessions. */
export function fileLines(folder: string, disk: Disk): ExactLines {
  return {
    async *read(sessionId) {
      const { log } = logPaths(folder, checkSessionId(sessionId));
      yield* splitLines(createReadStream(log));
    },
    async add(sessionId, lines) {
      const { directory } = logPaths(folder, checkSessionId(sessionId));
      const isThere = (): boolean => statSync(directory, { throwIfNoEntry: false }) !== undefined;
      if (isThere()) throw alreadyThere(sessionId);
      const draft = join(folder, `.import-${crypto.randomUUID()}`);
      const fail = failTo("import the session");
      try {
        await disk.mkdir(draft).catch(fail);
        await writeLines(disk, join(draft, "events.jsonl"), checkedLines(lines));
        if (isThere()) throw alreadyThere(sessionId);
        await disk.rename(draft, directory).catch(fail);
        await disk.syncDirectory(folder).catch(fail);
      } finally {
        await disk.remove(draft).catch(() => undefined);
      }
    },
  };
}

async function writeLines(disk: Disk, path: string, lines: AsyncIterable<string>): Promise<void> {
  const fail = failTo("import the session");
  const fd = await disk.openExclusive(path).catch(fail);
  try {
    let text = "";
    for await (const line of lines) {
      text += `${line}\n`;
      if (text.length < PIECE_BYTES) continue;
      await disk.write(fd, Buffer.from(text)).catch(fail);
      text = "";
    }
    await disk.write(fd, Buffer.from(text)).catch(fail);
    await disk.sync(fd).catch(fail);
  } finally {
    await disk.close(fd);
  }
}
