/** Encrypts bytes with AES-256-GCM and a key in a file of its own. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Disk, writeNewFile } from "./disk.ts";

export interface Seal {
  close(bytes: Uint8Array): Buffer;
  /**
   * Returns bytes that were never sealed unchanged. Returns undefined for bytes sealed with another key, and for
   * damaged ones.
   */
  open(bytes: Buffer): Buffer | undefined;
}

const MARK = Buffer.from("troupe\u0000sealed\u0000");
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Creates the key if there is none. */
export async function keyedSeal(options: { readonly path: string; readonly disk: Disk }): Promise<Seal> {
  const key = (await readKey(options.path)) ?? (await makeKey(options));
  return {
    close(bytes) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv);
      const sealed = [cipher.update(bytes), cipher.final()];
      return Buffer.concat([MARK, iv, cipher.getAuthTag(), ...sealed]);
    },
    open(bytes) {
      if (!bytes.subarray(0, MARK.length).equals(MARK)) return bytes;
      const [iv, tag, sealed] = splitBytes(bytes.subarray(MARK.length), IV_BYTES, TAG_BYTES);
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, iv).setAuthTag(tag);
        return Buffer.concat([decipher.update(sealed), decipher.final()]);
      } catch {
        return undefined;
      }
    },
  };
}

function splitBytes(bytes: Buffer, first: number, second: number): [Buffer, Buffer, Buffer] {
  return [bytes.subarray(0, first), bytes.subarray(first, first + second), bytes.subarray(first + second)];
}

async function readKey(path: string): Promise<Buffer | undefined> {
  const key = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (key === undefined || key.length === KEY_BYTES) return key;
  throw new Error(
    `${path} is damaged: it has ${key.length} bytes, not ${KEY_BYTES}. Older data cannot be read without it.`,
  );
}

/** Creates the key file atomically. If several processes create one, all use the first. */
async function makeKey({ path, disk }: { readonly path: string; readonly disk: Disk }): Promise<Buffer> {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  const key = randomBytes(KEY_BYTES);
  await disk.mkdir(dirname(path));
  await writeNewFile(disk, temporary, [key]);
  try {
    await disk.link(temporary, path);
    await disk.syncDirectory(dirname(path));
    return key;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return (await readKey(path)) ?? key;
  } finally {
    await disk.unlink(temporary).catch(() => undefined);
  }
}
