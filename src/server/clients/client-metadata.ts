/** Metadata that clients store for a session: a small table of strings beside its log. */
import { join } from "node:path";
import * as z from "zod";
import { nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { readRegular } from "../../lib/node/shared-folder.ts";
import { TroupeError } from "../../protocol/errors.ts";

const FILE = "client-metadata.json";
const MAX_KEYS = 200;
const MAX_FILE_BYTES = 256 * 1024;

const Metadata = z.record(z.string().min(1).max(200), z.string().max(16_384));
export type ClientMetadata = z.infer<typeof Metadata>;

export interface MetadataChange {
  readonly clear: boolean;
  readonly remove: readonly string[];
  readonly set: Readonly<Record<string, string>>;
}

/** Returns an empty table if none is stored. Throws if the file is damaged. */
export async function readClientMetadata(folder: string): Promise<ClientMetadata> {
  const bytes = await readRegular(join(folder, FILE), MAX_FILE_BYTES).catch(() => undefined);
  if (bytes === undefined) return {};
  try {
    return Metadata.parse(JSON.parse(bytes.toString("utf8")));
  } catch (cause) {
    const message = `The client metadata in ${folder} is damaged. Delete ${FILE} there to start over.`;
    throw new TroupeError("storage", message, { cause });
  }
}

/** Clears, removes and sets, in this order. Returns the new table. */
export async function updateClientMetadata(folder: string, change: MetadataChange): Promise<ClientMetadata> {
  const known = change.clear ? {} : await readClientMetadata(folder);
  const kept = Object.entries(known).filter(([key]) => !change.remove.includes(key));
  const metadata = { ...Object.fromEntries(kept), ...change.set };
  const text = JSON.stringify(metadata);
  if (Object.keys(metadata).length > MAX_KEYS || Buffer.byteLength(text) > MAX_FILE_BYTES) {
    throw new TroupeError("limit", `Client metadata can have at most ${MAX_KEYS} keys and ${MAX_FILE_BYTES} bytes.`);
  }
  Metadata.parse(metadata);
  await nodeDisk.mkdir(folder);
  await replaceFile(nodeDisk, join(folder, FILE), text);
  return metadata;
}
