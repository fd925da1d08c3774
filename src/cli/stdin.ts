import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { fstatSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { quoted, wrapInTag } from "../lib/quoting.ts";
import { TroupeError } from "../protocol/errors.ts";

const MAX_BYTES = 10 * 1024 * 1024;
/** How long to wait for the first byte: a silent pipe must not block the prompt. */
const FIRST_BYTE_MS = 3_000;

export type Piped =
  | { readonly kind: "none" }
  | { readonly kind: "silent" }
  | { readonly kind: "data"; readonly bytes: Buffer };

/**
 * Reads piped input. `patient` waits for the end without a limit; otherwise a pipe that is silent for three seconds
 * counts as unused.
 */
export async function readPiped({ patient }: { patient: boolean }): Promise<Piped> {
  if (!isPiped()) return { kind: "none" };
  const { stdin } = process; // accessing it creates a stream
  const chunks: Buffer[] = [];
  let size = 0;
  const silent = await new Promise<boolean>((resolve, reject) => {
    const timer = patient ? undefined : setTimeout(() => resolve(true), FIRST_BYTE_MS);
    stdin.on("data", (chunk: Buffer) => {
      clearTimeout(timer);
      size += chunk.length;
      if (size > MAX_BYTES) {
        const hint = "Save it to a file and let the prompt name the file.";
        return reject(new TroupeError("usage", "More than 10 MiB was piped in.", { hint }));
      }
      chunks.push(chunk);
    });
    stdin.once("end", () => {
      clearTimeout(timer);
      resolve(false);
    });
    stdin.once("error", reject);
  });
  stdin.pause();
  stdin.unref?.();
  if (silent && size === 0) {
    stdin.destroy();
    return { kind: "silent" };
  }
  const bytes = Buffer.concat(chunks);
  return bytes.length < 4096 && bytes.toString("utf8").trim() === "" ? { kind: "none" } : { kind: "data", bytes };
}

/** Larger input goes into a file: about 16,000 tokens. */
const MAX_INLINE_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 4_000;

/** True for input that fits into a prompt. */
export const fitsPrompt = (bytes: Buffer): boolean => bytes.length <= MAX_INLINE_BYTES && !isBinary(bytes);

const isBinary = (bytes: Buffer): boolean => bytes.includes(0) || !isUtf8(bytes);

/** Stores input that does not fit into a prompt, and returns a description for the model. */
export async function spillPiped(bytes: Buffer, folder: string): Promise<string> {
  const binary = isBinary(bytes);
  const path = join(folder, `piped-input-${randomUUID().slice(0, 8)}.${binary ? "bin" : "txt"}`);
  await nodeDisk.mkdir(folder);
  await replaceFile(nodeDisk, path, bytes);
  const size = `${bytes.length.toLocaleString("en-US")} bytes${binary ? " of binary data" : ""}`;
  const note = `The piped input (${size}) is in the file ${path}. Read the parts you need.`;
  if (binary) return note;
  return `${note} It begins:\n\n${bytes.toString("utf8").slice(0, SHOWN_CHARACTERS)}`;
}

/** Adds the piped text to the prompt, framed as data. The text cannot close the frame. */
export function withPiped(prompt: string, text: string): string {
  return `${prompt}\n\n${wrapInTag("piped_input", {}, quoted(text).trimEnd())}`;
}

function isPiped(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    return false;
  }
}
