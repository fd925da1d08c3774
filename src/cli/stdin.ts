import { fstatSync } from "node:fs";
import { quoted, wrapped } from "../lib/quoting.ts";
import { TroupeError } from "../protocol/errors.ts";

const MAX_BYTES = 10 * 1024 * 1024;
/** A pipe that nobody writes to must not hold the prompt for ever. */
const FIRST_BYTE_MS = 3_000;

export type Piped =
  | { readonly kind: "none" }
  | { readonly kind: "silent" }
  | { readonly kind: "data"; readonly text: string };

/**
 * What was piped in. `patient` waits for the end however long it takes; otherwise a pipe that stays silent for three
 * seconds counts as not used.
 */
export async function readPiped({ patient }: { patient: boolean }): Promise<Piped> {
  if (!isPiped()) return { kind: "none" };
  const { stdin } = process; // to name it makes a stream
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
  const text = Buffer.concat(chunks).toString("utf8");
  return text.trim() === "" ? { kind: "none" } : { kind: "data", text };
}

/** Adds the piped text to the prompt, framed as data. The text cannot close the frame. */
export function withPiped(prompt: string, text: string): string {
  return `${prompt}\n\n${wrapped("piped_input", {}, quoted(text).trimEnd())}`;
}

function isPiped(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    return false;
  }
}
