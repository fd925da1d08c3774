import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import type { Found, Refreshed, SearchQuery, SessionIndex, SessionUpdate } from "../../store/index/index-sqlite.ts";
import type { Store } from "../../store/store.ts";

/** The index of past sessions, loaded on first use. */
export interface PastSessions {
  /** The database file, which agents read with the tool `sql`. */
  readonly path: string;
  /** Updates or rebuilds the index, then searches it. */
  search(query: SearchQuery): Promise<readonly Found[]>;
  /** Updates the index, as far as possible in this time. */
  refresh(options?: { readonly forMs?: number }): Promise<Refreshed>;
  reindex(): Promise<Refreshed>;
  update(update: SessionUpdate): Promise<void>;
  /** Removes a deleted session. */
  remove(sessionId: string): Promise<void>;
  close(): Promise<void>;
}

export function pastSessions({
  stateRoot,
  store,
  disk,
}: {
  stateRoot: string;
  store: Store;
  disk: Disk;
}): PastSessions {
  const path = join(stateRoot, "session-store.db");
  let opening: Promise<SessionIndex> | undefined;
  const open = (): Promise<SessionIndex> => {
    opening ??= import("../../store/index/index-sqlite.ts").then(({ sessionIndex }) =>
      sessionIndex({ path, store, disk }),
    );
    return opening;
  };
  return {
    path,
    async search(query) {
      const index = await open();
      await index.refresh();
      return index.search(query);
    },
    refresh: async (options) => (await open()).refresh(options),
    reindex: async () => (await open()).reindex(),
    update: async (update) => (await open()).update(update),
    async remove(sessionId) {
      if (existsSync(path)) await (await open()).remove([sessionId]);
    },
    async close() {
      await (await opening?.catch(() => undefined))?.close();
      opening = undefined;
    },
  };
}
