import { join } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import type { Seal } from "../lib/node/seal.ts";

/** What `troupe undo` keeps of files is closed with a key of the home, loaded with the first file that is kept. */
export function undoSeal({ home, disk }: { home: string; disk: Disk }): () => Promise<Seal> {
  return async () => (await import("../lib/node/seal.ts")).keyedSeal({ path: join(home, "undo.key"), disk });
}
