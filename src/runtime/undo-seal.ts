import { join } from "node:path";
import type { Disk } from "../lib/node/disk.ts";
import type { Seal } from "../lib/node/seal.ts";

/**
 * Returns the encryption for undo contents, with a key in the state root. It is loaded when the first file is stored.
 */
export function undoSeal({ stateRoot, disk }: { stateRoot: string; disk: Disk }): () => Promise<Seal> {
  return async () => (await import("../lib/node/seal.ts")).keyedSeal({ path: join(stateRoot, "undo.key"), disk });
}
