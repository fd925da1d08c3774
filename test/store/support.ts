import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Disk, nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { FileProvider } from "../../src/protocol/session-fs.ts";
import { clientStore } from "../../src/store/client/client-store.ts";
import { type JsonlStoreOptions, jsonlStore } from "../../src/store/jsonl.ts";
import { encodeLine, noRecord, type RecordLink } from "../../src/store/log/line.ts";
import type { Store } from "../../src/store/store.ts";

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-store-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Real files without the waiting, for tests that are not about power cuts. */
export const hastyDisk: Disk = { ...nodeDisk, sync: async () => {}, syncDirectory: async () => {} };

export function realStore(root: string, more: Partial<JsonlStoreOptions> = {}): Store {
  return jsonlStore({ root, disk: nodeDisk, stamp: systemStamp, ...more });
}

/** Sessions that a client keeps; what is of use here only goes to a temporary folder. */
export function clientStoreOf(provider: FileProvider): Store {
  return clientStore({ provider, folder: temporaryFolder(), disk: hastyDisk, stamp: systemStamp });
}

/** The n-th message of a session. */
export function message(n: number, content = `message ${n}`): SessionEvent {
  return {
    id: `event-${n}`,
    timestamp: "2026-01-01T00:00:00.000Z",
    parentId: n === 1 ? null : `event-${n - 1}`,
    type: "user.message",
    data: { content },
  };
}

export const messages = (count: number, from = 1): SessionEvent[] =>
  Array.from({ length: count }, (_, index) => message(from + index));

/** The bytes of a log that holds these events. */
export function encodeLog(events: readonly SessionEvent[]): Buffer[] {
  let last: RecordLink = noRecord;
  return events.map((event) => {
    const { bytes, link } = encodeLine(event, last);
    last = link;
    return bytes;
  });
}

export const idsOf = (events: readonly SessionEvent[]): string[] => events.map((event) => event.id);

/** Numbers from 0 up to 1 that are the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
