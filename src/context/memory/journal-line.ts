/**
 * Encodes one transaction of a memory as a line, with its author and a checksum. A line has the facts as they are after
 * it, so reading up to any line gives the state at that time.
 */
import { crc32 } from "node:zlib";
import * as z from "zod";
import { isDeeperThan, parseJson } from "../../lib/json.ts";
import { StoredFact } from "./memory.ts";

const MAX_CHANGES = 1000;

const id = z.string().min(1).max(64);

export const Transaction = z.lazy(() =>
  z.object({
    seq: z.int().positive(),
    place: z.string().max(100),
    id,
    at: z.string().max(40),
    /** `person`, `import`, or `agent:` and the session id. */
    by: z.string().max(200),
    action: z.enum(["store", "vote", "add", "edit", "remove", "accept", "import", "undo", "consolidate", "used"]),
    note: z.string().max(1000).exactOptional(),
    /** For `undo`: the transaction that was undone. */
    undoes: id.exactOptional(),
    facts: z.array(StoredFact).max(MAX_CHANGES),
    /** Ids of facts that do not exist after this transaction. */
    absent: z.array(id).max(MAX_CHANGES).exactOptional(),
    /** For `used`: number of uses and time of the last one. */
    used: z.record(id, z.object({ uses: z.int().positive(), at: z.string().max(40) })).exactOptional(),
  }),
);
export type Transaction = z.infer<typeof Transaction>;

const MAX_LINE_BYTES = 8 * 1024 * 1024;
const MAX_DEPTH = 12;
/** Matches `,"crc":"`, eight digits and `"}`. */
const TRAILER = /,"crc":"([0-9a-f]{8})"\}$/;

export function encodeTransaction(transaction: Transaction): Buffer {
  const covered = JSON.stringify(transaction).slice(0, -1);
  return Buffer.from(`${covered},"crc":"${checksum(covered)}"}\n`);
}

/** Returns `undefined` for a damaged or foreign line. */
export function decodeTransaction(line: string, spaceKey: string): Transaction | undefined {
  const trailer = TRAILER.exec(line);
  if (trailer === null || line.length > MAX_LINE_BYTES) return undefined;
  const covered = line.slice(0, trailer.index);
  if (checksum(covered) !== trailer[1] || isDeeperThan(line, MAX_DEPTH)) return undefined;
  const json = parseJson(`${covered}}`);
  const parsed = Transaction.safeParse(json.ok ? json.value : undefined);
  if (!parsed.success || parsed.data.place !== spaceKey) return undefined;
  return parsed.data.facts.every((fact) => fact.place === spaceKey) ? parsed.data : undefined;
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
